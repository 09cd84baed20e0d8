#include "coordinator/spec/foreign_keys.h"

#include "coordinator/spec/schema.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::spec {
namespace {

using ::testing::HasSubstr;

std::string Hint(absl::string_view section, absl::string_view key) {
  return HintForUnknownKey(section, key, AllKeyPaths());
}

TEST(ForeignKeysTest, KeysOfOtherToolsNameTheToolAndOurKey) {
  EXPECT_EQ(Hint("", "learning_rate"),
            "this is Hugging Face Trainer's key: write optimizer.lr");
  EXPECT_EQ(Hint("model", "n_layer"),
            "this is nanoGPT's key: write model.layers");
  EXPECT_THAT(Hint("", "gradient_accumulation_steps"),
              HasSubstr("derived: batch.global / (batch.micro_batch"));
  EXPECT_THAT(Hint("model", "block_size"), HasSubstr("write model.context"));
  EXPECT_THAT(Hint("", "train_micro_batch_size_per_gpu"),
              HasSubstr("DeepSpeed's key: write batch.micro_batch"));
  EXPECT_THAT(Hint("", "micro-batch-size"),
              HasSubstr("Megatron-LM's key: write batch.micro_batch"));
}

TEST(ForeignKeysTest, RightWordInTheWrongSection) {
  EXPECT_EQ(Hint("", "stages"), "did you mean pipeline.stages?");
  EXPECT_EQ(Hint("pipeline", "micro_batch"), "did you mean batch.micro_batch?");
  EXPECT_EQ(Hint("optimizer", "every"),
            "did you mean evaluate.every or checkpoint.every?");
}

TEST(ForeignKeysTest, NearMisspellings) {
  EXPECT_EQ(Hint("model", "contxet"), "did you mean model.context?");
  EXPECT_EQ(Hint("model", "tiedEmbeddings"),
            "did you mean model.tied_embeddings?");
  EXPECT_EQ(Hint("", "optimiser"), "did you mean optimizer?");
  EXPECT_EQ(Hint("optimizer", "weight-decay"),
            "did you mean optimizer.weight_decay?");
  EXPECT_EQ(Hint("", "xyzzy"), "");
}

TEST(ForeignKeysTest, NoHintNamesAKeyThatDoesNotExist) {
  // Each "write a.b" of the table must be a key of the schema.
  for (const char* key : {"per_device_train_batch_size",
                          "train_batch_size",
                          "batch_size",
                          "max_steps",
                          "num_train_epochs",
                          "learning_rate",
                          "adam_beta1",
                          "adam_epsilon",
                          "max_grad_norm",
                          "optim",
                          "lr_scheduler_type",
                          "warmup_iters",
                          "lr_decay_iters",
                          "min_lr",
                          "n_layer",
                          "n_embd",
                          "n_head",
                          "n_kv_heads",
                          "intermediate_size",
                          "kv_channels",
                          "block_size",
                          "vocab_size",
                          "tie_word_embeddings",
                          "initializer_range",
                          "rms_norm_eps",
                          "rotary_base",
                          "resid_pdrop",
                          "model_type",
                          "model_name_or_path",
                          "dataset",
                          "data_path",
                          "validation_file",
                          "seq_length",
                          "text_column",
                          "tokenizer_name",
                          "num_stages",
                          "virtual_pipeline_model_parallel_size",
                          "partition_method",
                          "gradient_checkpointing",
                          "dp",
                          "bf16",
                          "eval_interval",
                          "eval_iters",
                          "save_steps",
                          "save_total_limit",
                          "save",
                          "resume_from_checkpoint",
                          "report_to",
                          "tensorboard_dir"}) {
    const std::string hint = Hint("nowhere", key);
    const size_t at = hint.find("write ");
    ASSERT_NE(at, std::string::npos) << key << ": " << hint;
    const size_t end = hint.find_first_of(" :,", at + 6);
    const std::string path = hint.substr(at + 6, end - at - 6);
    bool known = false;
    for (const absl::string_view existing : AllKeyPaths()) {
      known = known || existing == path ||
              existing.substr(0, path.size() + 1) == path + ".";
    }
    EXPECT_TRUE(known) << hint;
  }
}

}  // namespace
}  // namespace penstock::coordinator::spec
