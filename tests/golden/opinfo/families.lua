-- Made by tools/opinfo/generate.py with PyTorch 2.15.0. Do not edit.
return {
"fft",
"linalg",
"masked",
"nn",
"signal",
"special",
"tensor_a_to_h",
"tensor_i_to_z"}
