# SPDX-License-Identifier: Apache-2.0
"""How far a result may lie from TensorFlow's, by op and dtype. Integers, booleans and strings never may.

A value passes if it is within `ulps` units in the last place of the expected one, within `scale` units of the largest
finite magnitude of the expected tensor (for sums, whose error follows their largest terms), or within `floor` units of 1
(where large terms cancel to a small result). NaN matches NaN, infinities match by sign, and results below the smallest
normal number match zero, because TensorFlow flushes them.
"""
import collections

Tolerance = collections.namedtuple('Tolerance', 'ulps scale floor', defaults=(0, 0))

EXACT = Tolerance(0)
ROUNDED = Tolerance(1)         # one operation, correctly rounded or nearly
FUNCTION = Tolerance(4)        # transcendental functions; TensorFlow's own are polynomial approximations
EPSILON = {'float16': 2.0**-10, 'bfloat16': 2.0**-7, 'float32': 2.0**-23, 'float64': 2.0**-52}

_GROUPS = {
    EXACT: '''Identity IdentityN StopGradient PreventGradient Snapshot Reshape Transpose ConcatV2 Concat Slice StridedSlice
        StridedSliceGrad Pack Unpack Split SplitV Squeeze ExpandDims Tile Pad PadV2 MirrorPad Fill ZerosLike OnesLike
        BroadcastTo Gather GatherV2 GatherNd ResourceGather Where OneHot ReverseV2 Unique UniqueV2 UniqueWithCounts
        DynamicPartition DynamicStitch ParallelDynamicStitch Const Placeholder PlaceholderWithDefault Abs Neg Sign Floor
        Ceil Round Rint Maximum Minimum Max Min Relu ReluGrad Relu6 Relu6Grad Select SelectV2 ClipByValue MaxPool
        MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3D MaxPool3DGradGrad MaxPoolWithArgmax Dilation2D
        FractionalMaxPool ReadVariableOp Assign AssignVariableOp VariableV2 Bitcast Roll Reverse ReverseSequence ScatterNd
        TensorScatterUpdate TensorScatterMax TensorScatterMin GuaranteeConst DebugGradientIdentity ListDiff SegmentMax
        SegmentMin UnsortedSegmentMax UnsortedSegmentMin TopK TopKV2 NthElement NextAfter Complex Real Imag RandomUniform
        RandomUniformInt RandomShuffle StatelessRandomUniformV2 StatelessRandomUniformIntV2
        StatelessRandomUniform StatefulUniform RandomPoissonV2 StatelessRandomPoisson
        SaveV2 Switch Merge RefSwitch EnsureShape CheckNumerics''',
    ROUNDED: '''Add AddV2 Sub Mul RealDiv Div DivNoNan Square SquaredDifference Sqrt AssignAdd AssignSub
        AssignAddVariableOp AssignSubVariableOp ScatterAdd ScatterSub ScatterUpdate ResourceScatterAdd
        ResourceScatterSub BiasAdd BiasAddV1 FloorDiv FloorMod Mod Cast Range LinSpace''',
    Tolerance(2): '''StatelessRandomNormal StatelessTruncatedNormal StatefulStandardNormalV2 StatefulTruncatedNormal
        RandomGamma StatelessRandomGammaV2 StatelessRandomGammaV3 RandomStandardNormal TruncatedNormal StatelessRandomNormalV2 StatelessTruncatedNormalV2 Rsqrt Reciprocal Inv ReciprocalGrad InvGrad SqrtGrad''',
    Tolerance(4, 2): '''Elu Selu EluGrad SeluGrad''',
    Tolerance(2, 1): '''AddN AccumulateNV2 TanhGrad SigmoidGrad ApplyGradientDescent ResourceApplyGradientDescent
        ApplyProximalGradientDescent ResourceApplyProximalGradientDescent SparseApplyProximalGradientDescent
        ResourceSparseApplyProximalGradientDescent''',
    FUNCTION: '''Exp Log Log1p Expm1 Sigmoid Tanh Pow Softplus SoftplusGrad RsqrtGrad Erf Sin Cos Softsign''',
    Tolerance(16, 4, 1): '''Sum Mean Prod EuclideanNorm L2Loss BiasAddGrad AvgPool AvgPoolGrad AvgPool3D AvgPool3DGrad MaxPool3DGrad
        MaxPoolGradWithArgmax Dilation2DBackpropInput Dilation2DBackpropFilter FractionalAvgPool FractionalAvgPoolGrad
        FractionalMaxPoolGrad UnsortedSegmentSum
        SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments
        SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments SparseSegmentSumGrad SparseSegmentMeanGrad
        SparseSegmentSqrtNGrad SparseSegmentSumGradV2 SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2 SegmentSum SegmentMean SegmentProd UnsortedSegmentProd CumulativeLogsumexp Cumsum Cumprod HistogramSummary
        ScalarSummary TensorSummaryV2 FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient''',
    Tolerance(4, 2, 4): '''Softmax LogSoftmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits''',
    Tolerance(4, 8): '''SparseMatMul TridiagonalMatMul MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Conv2D Conv2DBackpropInput Conv2DBackpropFilter
        Conv Conv3D Conv3DBackpropInputV2 Conv3DBackpropFilterV2 FusedPadConv2D FusedResizeAndPadConv2D DepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter LRNGrad
        FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3''',
    # Decompositions: the terms of each sum are those of a whole row or column.
    Tolerance(64, 64, 8): '''Cholesky CholeskyGrad MatrixInverse MatrixDeterminant LogMatrixDeterminant MatrixSolve
        MatrixTriangularSolve MatrixSolveLs Lu Qr Svd SelfAdjointEigV2 Eig MatrixSquareRoot MatrixLogarithm
        BandedTriangularSolve TridiagonalSolve BatchCholesky BatchSelfAdjointEigV2''',
    Tolerance(8, 8, 8): '''Einsum FFT FFT2D FFT3D IFFT IFFT2D IFFT3D RFFT RFFT2D RFFT3D IRFFT IRFFT2D IRFFT3D''',
    # Mixes of pixels, whose parts may cancel.
    Tolerance(16, 4, 8): '''ResizeBilinear ResizeBicubic ResizeArea ResizeBilinearGrad ResizeBicubicGrad ResizeNearestNeighborGrad
        CropAndResize CropAndResizeGradImage CropAndResizeGradBoxes RGBToHSV HSVToRGB AdjustHue AdjustSaturation AdjustContrastv2
        NonMaxSuppressionV5 ImageProjectiveTransformV2 ImageProjectiveTransformV3 ScaleAndTranslate ScaleAndTranslateGrad''',
    Tolerance(64, 64, 64): 'AudioSpectrogram Mfcc SdcaOptimizer SdcaOptimizerV2',
    Tolerance(16, 16, 16): '''LSTMBlockCell LSTMBlockCellGrad BlockLSTM BlockLSTMGrad BlockLSTMV2 BlockLSTMGradV2 GRUBlockCell
        GRUBlockCellGrad''',
    # Sums over ways through time.
    Tolerance(64, 16, 64): 'CTCLoss CTCBeamSearchDecoder',
    Tolerance(8, 0, 8): 'Digamma Erfinv Polygamma',
    Tolerance(16, 0, 8): '''BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e
        BesselY0 BesselY1 Dawsn FresnelCos FresnelSin Expint Spence''',
    # Powers and exponentials of large numbers, whose errors follow their size.
    Tolerance(2048, 0, 64): 'Igamma Igammac IgammaGradA RandomGammaGrad Betainc',
    # A step of an optimizer is a handful of operations whose order the fused kernels may choose.
    Tolerance(8, 4): '''ApplyMomentum ApplyAdam ApplyAdagrad ApplyRMSProp ApplyCenteredRMSProp ApplyFtrl ApplyFtrlV2
        ApplyAdadelta ResourceApplyMomentum ResourceApplyAdam ResourceApplyAdagrad ResourceApplyRMSProp
        ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyAdadelta SparseApplyMomentum
        SparseApplyAdagrad SparseApplyRMSProp SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2
        SparseApplyAdadelta ApplyProximalAdagrad ResourceApplyProximalAdagrad ResourceSparseApplyMomentum
        ResourceSparseApplyAdagrad ResourceSparseApplyRMSProp
        ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2 ResourceSparseApplyAdadelta
        ApplyProximalAdagrad ResourceApplyProximalAdagrad SparseApplyProximalAdagrad ResourceSparseApplyProximalAdagrad
        ApplyAdaMax ApplyAddSign ApplyPowerSign ResourceApplyAdaMax ResourceApplyAddSign ResourceApplyPowerSign
        ConditionalAccumulator ResourceConditionalAccumulator SparseConditionalAccumulator''',
}
BY_OP = {op: tolerance for tolerance, ops in _GROUPS.items() for op in ops.split()}

# Where TensorFlow's own kernel is coarser than the type, with what was seen.
BY_OP_AND_TYPE = {
    # Winograd's minimal filtering, ours and some of TensorFlow's: within 2^-16 of the largest result.
    **{(op, 'float32'): Tolerance(4, 128) for op in ('Conv2D', 'Conv2DBackpropInput', 'Conv2DBackpropFilter')},
    # The gradients that come in are float, and so are the weights.
    **{(op, 'float64'): Tolerance(2**31, 0, 2**31) for op in ('ResizeBilinearGrad', 'ResizeBicubicGrad', 'CropAndResizeGradImage')},
    # The logarithms of sums are float.
    **{(op, 'float64'): Tolerance(2**33, 2**31, 2**31) for op in ('CTCLoss', 'CTCBeamSearchDecoder')},
    ('Tanh', 'float32'): Tolerance(8),       # a rational approximation
    ('Sigmoid', 'float32'): Tolerance(8),    # the same
    ('Erfc', 'float64'): Tolerance(8),
    ('Log1p', 'complex64'): Tolerance(64),   # 39 ulp off near -1
    ('Sigmoid', 'complex64'): Tolerance(64),
}

# Error codes of ours that stand for others of TensorFlow's.
_OTHER_CODES = {
    # A variable that was never initialised is FailedPrecondition (9) in every op here, whereas TensorFlow's kernels say
    # NotFound (5) or Internal (13) by chance.
    9: lambda op: (5, 13),
    # A division by zero and a bad slice are InvalidArgument (3); these kernels of TensorFlow's say Internal.
    3: lambda op: (13,) if op in ('TruncateDiv', 'TruncateMod', 'SaveV2') else (),
    # A file that is not there is NotFound (5) everywhere here.
    5: lambda op: (3,) if op == 'MergeV2Checkpoints' else (),
}


def code_may_stand_for(op, mine, theirs):
    return mine == theirs or theirs in _OTHER_CODES.get(mine, lambda op: ())(op)


def tolerance(op, dtype):
    found = BY_OP_AND_TYPE.get((op, dtype)) or BY_OP.get(op, FUNCTION)
    # TensorFlow rounds to the narrow types after each operation inside a kernel, we once at the end, or the other way.
    return found._replace(ulps=2 * found.ulps) if dtype in ('float16', 'bfloat16') else found
