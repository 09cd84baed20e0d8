"""data.train in its forms: token files of nanoGPT, and folders, whose files in the
order of their names are one text, or one list of lines."""

import json
import struct
import unittest

import penstock_case as pc


class DataCase(pc.PenstockCase):

  def write_job_on(self, train):
    self.write_job(pc.TINY_JOB.replace("train: text.txt", f"train: {train}"))

  def weights(self, train, run_dir, *arguments):
    self.write_job_on(train)
    return self.succeed(*arguments, run_dir=run_dir)["weights_sha256"]


class NanogptTest(DataCase):

  VOCABULARY = ("--set", "model.vocab=256")

  def write_ids(self, ids):
    (self.work / "train.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))

  def test_trains_as_the_text_of_the_same_tokens(self):
    # The byte tokenizer's ids are the bytes. `auto` goes by the name.
    self.write_ids(pc.TEXT.encode())
    validation = ("--set", "data.validation=10%", "--set", "evaluate.every=2",
                  "--set", "evaluate.batches=1", *self.VOCABULARY)
    self.assertEqual(self.weights("train.bin", "ids", *validation),
                     self.weights("text.txt", "text", *validation))
    losses = [[(line["loss"], line["tokens"], line.get("validation_loss"))
               for line in self.json_lines("metrics.jsonl", run_dir)]
              for run_dir in ("ids", "text")]
    self.assertEqual(*losses)

  def test_an_id_beyond_the_vocabulary_is_refused(self):
    self.write_ids([1, 2, 256] * 20)  # 0 if only its low byte counted.
    self.write_job_on("train.bin")
    done = self.run_job(*self.VOCABULARY)
    self.assertEqual(done.code, 2, done)
    self.assertRegex(done.stderr, r"job\.yaml:3:\d+: data\.train.*train\.bin: "
                     r".*256")
    self.assertFalse((self.work / "run").exists())


class DataFolderTest(DataCase):

  def test_folder_of_texts(self):
    folder = self.work / "corpus"
    (folder / "sub").mkdir(parents=True)
    third = len(pc.TEXT) // 3  # In the middle of a window.
    (folder / "10.txt").write_text(pc.TEXT[:third])
    (folder / "9.txt").write_text(pc.TEXT[third:])
    # What is left out.
    (folder / ".hidden.txt").write_text("not this")
    (folder / "README.md").write_text("nor this")
    (folder / "sub" / "1.txt").write_text("nor this")
    self.assertEqual(self.weights("corpus", "folder"),
                     self.weights("text.txt", "file"))

  def test_folder_of_json_lines(self):
    lines = [json.dumps({"input_ids": [(i * 7 + j) % 250 for j in range(17)]})
             for i in range(40)]
    folder = self.work / "lines"
    folder.mkdir()
    (folder / "a.jsonl").write_text("\n".join(lines[:15]) + "\n")
    (folder / "b.jsonl").write_text("\n".join(lines[15:]) + "\n")
    (self.work / "all.jsonl").write_text("\n".join(lines) + "\n")
    vocabulary = ("--set", "model.vocab=256", "--set", "data.format=jsonl")
    self.assertEqual(self.weights("lines", "folder", *vocabulary),
                     self.weights("all.jsonl", "file", *vocabulary))

  def test_a_mask_that_would_matter_is_named(self):
    ids = list(range(1, 18))
    lines = [{"input_ids": ids, "attention_mask": [1] * 17}] * 20
    lines[4] = {"input_ids": ids, "attention_mask": [0] * 9 + [1] * 8}
    (self.work / "all.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines))
    self.write_job_on("all.jsonl")
    done = self.run_job("--set", "model.vocab=256")
    self.assertEqual(done.code, 0, done)
    self.assertRegex(done.stderr, r"IGNORED: data\.train: .*all\.jsonl:5: its "
                     r"attention_mask leaves out")
    self.assertEqual(done.stderr.count("attention_mask"), 1, done)

  def test_folder_of_another_format_is_refused_with_the_remedy(self):
    # A name that does not say what is in it: text, where no format is given.
    (self.work / "lines").mkdir()
    (self.work / "lines/a.jsonl").write_text('{"input_ids": [1, 2, 3]}\n')
    self.write_job_on("lines")
    done = self.run_job()
    self.assertEqual(done.code, 2, done)
    self.assertRegex(done.stderr, r"job\.yaml:3:\d+: data\.train.*lines: is a "
                     r"folder without \.txt files; for its \.jsonl files say "
                     r"data\.format: jsonl")

  def test_folder_without_data_is_refused(self):
    (self.work / "empty").mkdir()
    self.write_job_on("empty")
    done = self.run_job()
    self.assertEqual(done.code, 2, done)
    self.assertRegex(done.stderr, r"job\.yaml:3:\d+: data\.train.*empty")
    self.assertFalse((self.work / "run").exists())


if __name__ == "__main__":
  unittest.main()
