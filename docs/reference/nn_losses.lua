-- Examples of the further losses of nn.
local lt = require "lutra"
local nn, F = lt.nn, lt.F
local x, y = lt.tensor{{0.2, 0.9}, {0.6, 0.4}}, lt.tensor{{0., 1.}, {1., 0.}}
local labels, signs = lt.tensor{2, 1}, lt.tensor{{-1., 1.}, {1., -1.}}

-- Differences
print(nn.SmoothL1Loss()(x, y))  --> tensor(0.0463)

-- Probabilities and logits
print(nn.BCELoss()(x, y))  --> tensor(0.3375)
print(nn.BCEWithLogitsLoss()(x, y))  --> tensor(0.6224)
print(nn.KLDivLoss{reduction = "batchmean"}(x:log_softmax(2), y))  --> tensor(0.5007)
print(nn.PoissonNLLLoss()(x, y))  --> tensor(1.3737)
print(nn.GaussianNLLLoss()(x, y, lt.ones(2, 1)))  --> tensor(0.0463)

-- Class scores
print(nn.MultiMarginLoss()(x, labels))  --> tensor(0.2750)
print(nn.MultiLabelMarginLoss()(x, lt.tensor{{2, 0}, {1, 2}}))  --> tensor(0.0750)
print(nn.MultiLabelSoftMarginLoss()(x, y))  --> tensor(0.6224)

-- Sequences of labels; the blank is label 1
print(nn.CTCLoss()(lt.zeros(4, 1, 3):log_softmax(3), lt.tensor{{2, 3}}, {4}, {2}))
--> tensor(0.8432)

-- Margins and distances
print(nn.HingeEmbeddingLoss()(x, signs))  --> tensor(0.7250)
print(nn.SoftMarginLoss()(x, signs))  --> tensor(0.6224)
print(nn.CosineEmbeddingLoss()(x, y, lt.tensor{1, -1}))  --> tensor(0.4279)
print(nn.MarginRankingLoss()(x, y, signs))  --> tensor(0.2750)
print(nn.TripletMarginLoss()(x, y, 1 - y))  --> tensor(0.3683)
print(nn.TripletMarginWithDistanceLoss{distance_function = function(a, b)
  return 1 - F.cosine_similarity(a, b)
end}(x, y, 1 - y))  --> tensor(0.4817)

-- Many classes, the most frequent ones first; a cluster begins behind each cutoff
local adaptive = nn.AdaptiveLogSoftmaxWithLoss(4, 100, {10, 50})
local log_probability, loss = adaptive(lt.ones(2, 4), lt.tensor{3, 80})
print(log_probability.shape, loss.shape)          --> {2}	{}
print(adaptive:log_prob(lt.ones(2, 4)).shape)     --> {2, 100}
print(adaptive:predict(lt.ones(2, 4)).shape)      --> {2}
adaptive:reset_parameters() -- of nn.AdaptiveLogSoftmaxWithLoss

-- A linear layer and the cross entropy of its output
print(nn.LinearCrossEntropyLoss(4, 10)(lt.ones(2, 4), lt.tensor{3, 8}).shape)  --> {}
