"""The encoding of categorical normalizing flows against Bayes' rule."""

import torch

from unordinal.data.spec import DataSpec
from unordinal.models.categorical_nf import BayesDecoder
from unordinal.models.latent_flow import LatentFlow
from unordinal.nets.settings import LSTM
from unordinal.recipes.latent_flow import CategoricalNfSettings
from unordinal.recipes.settings import Mixture

K, L = 3, 2


@torch.no_grad()
def test_the_decoder_is_bayes_rule() -> None:
    model = CategoricalNfSettings(Mixture(LSTM(8, 1), 2, 4), 2).build(DataSpec("tiny", K, (L,))).double()
    assert isinstance(model, LatentFlow)
    v = torch.randn(4, L, 2, dtype=torch.float64)
    classes = torch.arange(K).expand(4, L, K)
    assert isinstance(model.decoder, BayesDecoder)
    model.decoder.log_prior.normal_()
    prior = torch.softmax(model.decoder.log_prior, -1)
    likelihood = torch.stack(
        [
            torch.stack(
                [model.posterior.log_prob(v[:, i : i + 1], model.context(classes[:, i : i + 1, k])) for i in range(L)],
                1,
            )
            for k in range(K)
        ],
        dim=-1,
    ).exp()  # (4, L, K)
    expected = likelihood * prior / (likelihood * prior).sum(-1, keepdim=True)
    torch.testing.assert_close(torch.softmax(model.decoder(v), -1), expected)
