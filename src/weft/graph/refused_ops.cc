// SPDX-License-Identifier: Apache-2.0
// tools/coverage_page.py reads this table for the page of coverage: one entry a line or two, texts
// without escapes.
#include "weft/graph/refused_ops.h"

#include <string>

#include <fnmatch.h>

#include "absl/strings/str_split.h"

namespace weft {
namespace {

struct Refused {
  const char* names;  // patterns, with blanks between
  const char* why;
};

// The first entry that matches counts.
constexpr Refused kRefused[] = {
    {"SegmentMaxV2 SegmentMinV2 SegmentProdV2 SegmentSumV2 Risc* MlirPassthroughOp *Xla* Xla*",
     "only TensorFlow's compiler XLA runs it"},
    {"*TPU* *Tpu* Infeed* Outfeed* Prelinearize* CrossReplicaSum AllToAll CollectivePermute "
     "*DedupData* ConvertTo*Coo* GetMinibatch* GetStatsFromList* GlobalIterId SortListOfSparse* "
     "StoreMinibatch* UpdateTaskId* WorkerHeartbeat KthOrderStatistic MakeUnique TopKUnique "
     "TopKWithUnique",
     "it needs a TPU"},
    {"DTensor* CopyToMesh* Relayout*", "it belongs to DTensor, which places graphs by itself"},
    {"*TRT* *TensorRT*", "it needs TensorRT"},
    {"Cudnn* Nccl* Mkl* _Mkl* _Nccl*",
     "TensorFlow makes it for one library or device; its portable form is here"},
    {"CTCLossV2 MaxPoolGradGradWithArgmax FFTND IFFTND RFFTND IRFFTND GenerateBoundingBoxProposals "
     "SparseMatrixAdd SparseMatrixMul SparseMatrixSoftmax SparseMatrixSoftmaxGrad "
     "SparseMatrixZeros Conv2DBackpropFilterV2 Conv2DBackpropInputV2 CheckPinned",
     "TensorFlow itself has no kernel of it for the CPU"},
    {"AdjustContrast BatchFFT* BatchIFFT* BatchNormWithGlobalNormalization* NegTrain Skipgram "
     "TileGrad TensorArrayV2 TensorArrayClose TensorArrayCloseV2 TensorArrayConcat "
     "TensorArrayConcatV2 TensorArrayGather TensorArrayGatherV2 TensorArrayGrad TensorArrayGradV2 "
     "TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayScatter TensorArrayScatterV2 "
     "TensorArraySize TensorArraySizeV2 TensorArraySplit TensorArraySplitV2 TensorArrayUnpack "
     "TensorArrayWrite TensorArrayWriteV2 TensorArray",
     "TensorFlow has removed it: graphs that its clients make today cannot hold it"},
    {"*BoostedTrees*", "TensorFlow has no kernels of boosted trees any more"},
    {"Quantized* _Quantized* RequantizationRangePerChannel RequantizePerChannel UniformQuantize* "
     "UniformDequantize UniformRequantize StochasticCastToInt",
     "arithmetic of quantised types serves finished models, and no training program makes it"},
    {"*BigQuery* *Bigtable* LMDBReader", "it reads a product that is not a file of records"},
    {"RegisterDataset RegisterDatasetV2 DistributedSave ListSnapshotChunksDataset "
     "SnapshotChunkDataset SnapshotNestedDatasetReader DataService*",
     "there is no service of tf.data: every task reads its own dataset, use shard()"},
    {"SnapshotDataset", "snapshots of the first format are not read: use dataset.snapshot()"},
    {"WindowOp", "TensorFlow makes it when it rewrites its own pipelines"},
    {"Fact", "it computes nothing"},
    {"FileSystemSetConfiguration", "file systems are configured by the server's environment"},
    {"DecodeWebP DecodeJxl",
     "this server is built without the library of that format: use PNG or JPEG"},
    {"Send Recv", "tasks exchange tensors by themselves: place nodes with tf.device()"},
};

}  // namespace

absl::string_view WhyRefused(absl::string_view op) {
  const std::string name(op);
  for (const Refused& refused : kRefused) {
    for (const absl::string_view pattern : absl::StrSplit(refused.names, ' ')) {
      if (fnmatch(std::string(pattern).c_str(), name.c_str(), 0) == 0) return refused.why;
    }
  }
  return "";
}

}  // namespace weft
