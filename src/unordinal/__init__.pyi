"""The public names of the library, in one list; `__init__.py` reads it."""

from unordinal.abilities import (
    Denoiser as Denoiser,
)
from unordinal.abilities import (
    Orders as Orders,
)
from unordinal.abilities import (
    Stepper as Stepper,
)
from unordinal.abilities import (
    Times as Times,
)
from unordinal.abilities import (
    TrainingHooks as TrainingHooks,
)
from unordinal.abilities import (
    Weights as Weights,
)
from unordinal.api import (
    Run as Run,
)
from unordinal.api import (
    compare as compare,
)
from unordinal.api import (
    fit as fit,
)
from unordinal.api import (
    load as load,
)
from unordinal.api import (
    score as score,
)
from unordinal.config import (
    ModelSettings as ModelSettings,
)
from unordinal.config import (
    OptimConfig as OptimConfig,
)
from unordinal.config import (
    RunConfig as RunConfig,
)
from unordinal.config import (
    TrainConfig as TrainConfig,
)
from unordinal.data import (
    DATASETS as DATASETS,
)
from unordinal.data import (
    Data as Data,
)
from unordinal.data import (
    DataSpec as DataSpec,
)
from unordinal.data import (
    Source as Source,
)
from unordinal.data import (
    Vocabulary as Vocabulary,
)
from unordinal.data import (
    load_data as load_data,
)
from unordinal.data import (
    source_of as source_of,
)
from unordinal.diffusion.absorbing import (
    AbsorbingNoise as AbsorbingNoise,
)
from unordinal.diffusion.absorbing import (
    MaskCountNoise as MaskCountNoise,
)
from unordinal.diffusion.continuous import (
    ContinuousUniformNoise as ContinuousUniformNoise,
)
from unordinal.diffusion.process import (
    NoiseProcess as NoiseProcess,
)
from unordinal.diffusion.samplers import (
    SAMPLERS as SAMPLERS,
)
from unordinal.diffusion.samplers import (
    Ancestral as Ancestral,
)
from unordinal.diffusion.samplers import (
    Corrected as Corrected,
)
from unordinal.diffusion.samplers import (
    Sampler as Sampler,
)
from unordinal.diffusion.samplers import (
    Spread as Spread,
)
from unordinal.diffusion.schedules import (
    Schedule as Schedule,
)
from unordinal.diffusion.schedules import (
    cosine_schedule as cosine_schedule,
)
from unordinal.diffusion.uniform import (
    UniformNoise as UniformNoise,
)
from unordinal.diffusion.unmasking import (
    FirstHitting as FirstHitting,
)
from unordinal.diffusion.unmasking import (
    HighestConfidence as HighestConfidence,
)
from unordinal.diffusion.unmasking import (
    LowestEntropy as LowestEntropy,
)
from unordinal.evaluate.compare import (
    Compare as Compare,
)
from unordinal.evaluate.compare import (
    Comparison as Comparison,
)
from unordinal.evaluate.likelihood import (
    Evaluate as Evaluate,
)
from unordinal.evaluate.likelihood import (
    Score as Score,
)
from unordinal.flows.actnorm import (
    ActNorm as ActNorm,
)
from unordinal.flows.autoregressive import (
    ChannelAutoregressive as ChannelAutoregressive,
)
from unordinal.flows.autoregressive import (
    TimeFlow as TimeFlow,
)
from unordinal.flows.bijection import (
    Bijection as Bijection,
)
from unordinal.flows.bijection import (
    Chain as Chain,
)
from unordinal.flows.bijection import (
    Inverse as Inverse,
)
from unordinal.flows.coupling import (
    Coupling as Coupling,
)
from unordinal.flows.density import (
    ConditionalLogistic as ConditionalLogistic,
)
from unordinal.flows.density import (
    ConditionalNormal as ConditionalNormal,
)
from unordinal.flows.density import (
    Density as Density,
)
from unordinal.flows.density import (
    DiagonalNormal as DiagonalNormal,
)
from unordinal.flows.density import (
    Flow as Flow,
)
from unordinal.flows.density import (
    StandardLogistic as StandardLogistic,
)
from unordinal.flows.density import (
    StandardNormal as StandardNormal,
)
from unordinal.flows.elementwise import (
    Affine as Affine,
)
from unordinal.flows.elementwise import (
    Elementwise as Elementwise,
)
from unordinal.flows.elementwise import (
    ElementwiseTransform as ElementwiseTransform,
)
from unordinal.flows.elementwise import (
    LogisticMixture as LogisticMixture,
)
from unordinal.flows.elementwise import (
    NonlinearSquared as NonlinearSquared,
)
from unordinal.flows.linear import (
    InvertibleLinear as InvertibleLinear,
)
from unordinal.flows.ready import (
    autoregressive_flow as autoregressive_flow,
)
from unordinal.flows.ready import (
    coupling_flow as coupling_flow,
)
from unordinal.flows.reshape import (
    Permutation as Permutation,
)
from unordinal.flows.reshape import (
    Reversal as Reversal,
)
from unordinal.flows.reshape import (
    Squeeze as Squeeze,
)
from unordinal.flows.spline import (
    RationalQuadraticSpline as RationalQuadraticSpline,
)
from unordinal.model import (
    CategoricalModel as CategoricalModel,
)
from unordinal.model import (
    ExactModel as ExactModel,
)
from unordinal.models.argmax_flow import (
    ArgmaxFlow as ArgmaxFlow,
)
from unordinal.models.autoregressive import (
    AutoregressiveModel as AutoregressiveModel,
)
from unordinal.models.bound import (
    bound as bound,
)
from unordinal.models.diffusion import (
    Diffusion as Diffusion,
)
from unordinal.models.discrete_flow import (
    DiscreteFlow as DiscreteFlow,
)
from unordinal.models.latent_flow import (
    LatentFlow as LatentFlow,
)
from unordinal.nets.classes import (
    ClassTransformer as ClassTransformer,
)
from unordinal.nets.densenet import (
    DenseNet as DenseNet,
)
from unordinal.nets.ngrams import (
    NgramEmbedding as NgramEmbedding,
)
from unordinal.nets.recurrent import (
    BiLSTM as BiLSTM,
)
from unordinal.nets.recurrent import (
    CausalLSTM as CausalLSTM,
)
from unordinal.nets.sequence import (
    CausalTransformer as CausalTransformer,
)
from unordinal.nets.sequence import (
    DenoisingTransformer as DenoisingTransformer,
)
from unordinal.nets.sequence import (
    SequenceTransformer as SequenceTransformer,
)
from unordinal.nets.transformer import (
    TimeTransformer as TimeTransformer,
)
from unordinal.nets.unet import (
    UNet as UNet,
)
from unordinal.recipes import (
    RECIPES as RECIPES,
)
from unordinal.recipes import (
    Plan as Plan,
)
from unordinal.recipes import (
    Recipe as Recipe,
)
from unordinal.recipes import (
    configured as configured,
)
from unordinal.recipes.constructors import (
    absorbing as absorbing,
)
from unordinal.recipes.constructors import (
    argmax_ar as argmax_ar,
)
from unordinal.recipes.constructors import (
    argmax_coupling as argmax_coupling,
)
from unordinal.recipes.constructors import (
    argmax_gumbel as argmax_gumbel,
)
from unordinal.recipes.constructors import (
    argmax_gumbel_threshold as argmax_gumbel_threshold,
)
from unordinal.recipes.constructors import (
    argmax_softplus as argmax_softplus,
)
from unordinal.recipes.constructors import (
    arm as arm,
)
from unordinal.recipes.constructors import (
    arm_xl as arm_xl,
)
from unordinal.recipes.constructors import (
    categorical_nf as categorical_nf,
)
from unordinal.recipes.constructors import (
    discrete_flow as discrete_flow,
)
from unordinal.recipes.constructors import (
    latent_af_af as latent_af_af,
)
from unordinal.recipes.constructors import (
    latent_iaf_scf as latent_iaf_scf,
)
from unordinal.recipes.constructors import (
    multinomial as multinomial,
)
from unordinal.recipes.constructors import (
    uniform as uniform,
)
from unordinal.recipes.constructors import (
    uniform_dequant as uniform_dequant,
)
from unordinal.recipes.constructors import (
    uniform_dequant_ar as uniform_dequant_ar,
)
from unordinal.recipes.constructors import (
    uniform_dequant_coupling as uniform_dequant_coupling,
)
from unordinal.recipes.constructors import (
    vae as vae,
)
from unordinal.recipes.constructors import (
    variational_dequant as variational_dequant,
)
from unordinal.recipes.constructors import (
    variational_dequant_ar as variational_dequant_ar,
)
from unordinal.recipes.constructors import (
    variational_dequant_coupling as variational_dequant_coupling,
)
from unordinal.surjections.argmax import (
    GumbelArgmax as GumbelArgmax,
)
from unordinal.surjections.argmax import (
    SoftplusArgmax as SoftplusArgmax,
)
from unordinal.surjections.cartesian import (
    BinaryProduct as BinaryProduct,
)
from unordinal.surjections.cartesian import (
    CartesianProduct as CartesianProduct,
)
from unordinal.surjections.rounding import (
    OneHotRounding as OneHotRounding,
)
from unordinal.surjections.rounding import (
    OrdinalRounding as OrdinalRounding,
)
from unordinal.surjections.surjection import (
    Surjection as Surjection,
)
from unordinal.tasks.correcting import (
    Correct as Correct,
)
from unordinal.tasks.drawing import (
    Sample as Sample,
)
from unordinal.tasks.filling import (
    Fill as Fill,
)
from unordinal.tasks.filling import (
    FillMap as FillMap,
)
from unordinal.tasks.lines import (
    Measure as Measure,
)

__version__: str
