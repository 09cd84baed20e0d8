"""Loads a model folder with transformers' own class and prints, as JSON, how it
loaded and its mean loss on sequences: for transformers_test.py, by a Python that
has torch and transformers.

transformers_loss.py FOLDER SEQUENCES.jsonl COUNT
"""

import json
import sys

import torch
import transformers


def main():
  folder, sequences, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
  torch.set_num_threads(1)
  config = transformers.AutoConfig.from_pretrained(folder)
  model_class = getattr(transformers, config.architectures[0])
  model, info = model_class.from_pretrained(
      folder, torch_dtype=torch.float32, output_loading_info=True)
  model.eval()
  loss_sum, valid = 0.0, 0
  with open(sequences, encoding="utf-8") as lines, torch.no_grad():
    for _, line in zip(range(count), lines):
      sequence = json.loads(line)
      ids = torch.tensor([sequence["input_ids"]])
      labels = torch.tensor(sequence["labels"])
      logits = model(input_ids=ids).logits[0, :-1].double()
      loss_sum += torch.nn.functional.cross_entropy(
          logits, labels[1:], ignore_index=-100, reduction="sum").item()
      valid += int((labels[1:] != -100).sum())
  json.dump({
      "class": type(model).__name__,
      "loss": loss_sum / valid,
      "valid": valid,
      "missing": sorted(info["missing_keys"]),
      "unexpected": sorted(info["unexpected_keys"]),
      "mismatched": sorted(map(str, info["mismatched_keys"])),
      "versions": f"torch {torch.__version__}, transformers "
                  f"{transformers.__version__}",
  }, sys.stdout)


if __name__ == "__main__":
  main()
