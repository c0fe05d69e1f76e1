#!/usr/bin/env python3
"""Writes tests/golden/files/tokenizers.json: small tokenizers of several kinds as Hugging Face's library writes them, and
the ids that it gives for texts.

    python3 tools/golden/tokenizers_files.py

Made with the version of tokenizers in VERSION."""

import json
import os

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

VERSION = "0.23.3"
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden", "files", "tokenizers.json")

CORPUS = ["the quick brown fox jumps over the lazy dog. The dog's 123 cats don't   care!\n\n", "it's they're we've I'll",
          "for i in range(10):\n    print(i + 1)\n\treturn x == 12345\r\n", "h\u00e9llo w\u00f6rld \u4f60\u597d \U0001F600 na\u00efve"] * 3
TEXTS = ["", " ", "the dog", "The quick  brown   fox.", "don't DON'T they'RE 'tis", "\n\n  x\n y \t z  ", "123456789 1,000.50",
         "h\u00e9llo \u4f60\u597d\u3002 \U0001F600\U0001F601 \u00a0x \u0661\u0662\u0663 \u00bd\u2167", "a<s>b</s> <s>", "  leading", "trailing  ",
         "x_1 = f(y)[2:3]; // ok\r\n\r\nend", "\u2581under \u2028 sep", "'s'S\u017f '\u017f", "\u0301combining"]
SPECIAL = ["<s>", "</s>"]
GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")
QWEN = GPT4.replace("{1,3}", "")


def trained(model, pre, decoder, size=330, normalizer=None, **options):
    t = Tokenizer(model)
    if pre:
        t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    t.decoder = decoder
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False, **options))
    return t


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def all_tokenizers():
    bytes_of = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    gpt2 = trained(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel(), **bytes_of)
    yield "gpt2", gpt2
    yield "gpt2 with a blank before", trained(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=True),
                                               decoders.ByteLevel(), **bytes_of)
    llama3 = trained(models.BPE(ignore_merges=True), split(GPT4), decoders.ByteLevel(), **bytes_of)
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])])
    yield "llama 3", llama3
    yield "qwen", trained(models.BPE(), split(QWEN), decoders.ByteLevel(), normalizer=normalizers.NFC(), **bytes_of)
    fallback = ["<0x%02X>" % i for i in range(256)]
    llama2 = trained(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<s>"), None,
                     decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                        decoders.Strip(" ", 1, 0)]), size=120,
                     normalizer=normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]),
                     limit_alphabet=60)
    image = json.loads(llama2.to_str())
    vocab = image["model"]["vocab"]
    for token in fallback:
        vocab.setdefault(token, len(vocab))
    yield "llama 2", Tokenizer.from_str(json.dumps(image))
    yield "metaspace", trained(models.BPE(unk_token="<s>"), pre_tokenizers.Metaspace(), decoders.Metaspace(), size=120)
    words = Tokenizer(models.WordLevel({"<s>": 0, "the": 1, "dog": 2, "fox.": 3}, unk_token="<s>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.add_tokens([AddedToken("</s>")])
    yield "words", words


def main():
    if tokenizers.__version__ != VERSION:
        raise SystemExit("expected tokenizers %s, this is %s" % (VERSION, tokenizers.__version__))
    result = {"version": VERSION, "texts": TEXTS, "corpus": CORPUS, "tokenizers": []}
    for name, t in all_tokenizers():
        encodings = [t.encode(text) for text in TEXTS]
        result["tokenizers"].append({
            "name": name, "file": json.loads(t.to_str()), "ids": [e.ids for e in encodings],
            "decoded": [t.decode(e.ids) for e in encodings],
            "whole": [t.decode(e.ids, skip_special_tokens=False) for e in encodings]})
    with open(PATH, "w", encoding="utf-8", newline="\n") as file:
        json.dump(result, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
