# %% [markdown]
# # From the paper's equations to the code
#
# The two ideas of *Argmax Flows and Multinomial Diffusion*, by hand, each compared with the library.
#
# ## The argmax surjection
#
# An argmax flow models a class x as the argmax of a continuous v with density p(v). Its likelihood P(x) is the integral of p(v) over all v with
# argmax v = x. To train it we need v for a given x, so we draw noise u and push every element below element x with a softplus (algorithm 3):
#
#     v_x = u_x        v_i = u_x - softplus(u_x - u_i)
#
# Then log P(x) is at least the mean of log p(v) - log q(v | x), where log q(v | x) = log q(u) - log |det dv/du|.

# %%
import torch
from torch.nn.functional import logsigmoid, softplus

import unordinal

torch.manual_seed(0)


def log_normal(v: torch.Tensor) -> torch.Tensor:
    """The log-density of a standard normal, summed over classes: (..., K) -> (...)."""
    return torch.distributions.Normal(0.0, 1.0).log_prob(v).sum(-1)


def lift(u: torch.Tensor, x: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Threshold noise (N, K) at class x; also return log |det dv/du| (N,)."""
    top = u[:, x : x + 1]
    v = top - softplus(top - u)
    log_slope = logsigmoid(top - u)  # dv_i / du_i
    v[:, x], log_slope[:, x] = u[:, x], 0.0
    return v, log_slope.sum(-1)


num_classes, draws = 3, 200_000
u = torch.randn(draws, num_classes, dtype=torch.float64)
for x in range(num_classes):
    v, log_det = lift(u.clone(), x)
    assert bool((v.argmax(-1) == x).all())
    log_weight = log_normal(v) - (log_normal(u) - log_det)
    elbo = log_weight.mean()
    iwbo = torch.logsumexp(log_weight, 0) - torch.log(torch.tensor(float(draws)))
    print(f"class {x}: ELBO {elbo:.3f}, IWBO {iwbo:.3f}, truth {torch.log(torch.tensor(1 / num_classes)):.3f}")

# %% [markdown]
# With a standard normal p(v) every class has probability 1/3, and the importance-weighted bound finds it. The library's surjection
# gives the same v and the same Jacobian:

# %%
from unordinal.surjections.thresholds import softplus_threshold

x = torch.randint(0, num_classes, (draws,))
theirs, their_log_det = softplus_threshold(u, x)
ours, our_log_det = zip(*(lift(u.clone(), k) for k in range(num_classes)), strict=True)
rows = torch.arange(draws)
assert torch.allclose(theirs, torch.stack(ours)[x, rows])
assert torch.allclose(their_log_det, torch.stack(our_log_det)[x, rows])
print("equal to unordinal.surjections.thresholds.softplus_threshold")

# %% [markdown]
# ## Multinomial diffusion
#
# Each step keeps a class with probability 1 - beta_t, and otherwise draws it anew from all K classes. After t steps, with
# alpha_bar_t = prod (1 - beta_s),
#
#     q(x_t | x_0) = alpha_bar_t [x_t = x_0] + (1 - alpha_bar_t) / K
#
# and Bayes' rule gives the way back, q(x_{t-1} | x_t, x_0). The model puts its prediction of x_0 into the same formula. The bound is the KL between the
# two at every time, and log p(x_0 | x_1) at the first.

# %%
steps = 10
schedule = unordinal.cosine_schedule(steps)
alpha_bar = schedule.log_alpha(torch.arange(steps + 1)).exp()  # alpha_bar_0 = 1
one_hot = torch.eye(num_classes, dtype=torch.float64)


def forward(p: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """Mix probabilities (..., K) with uniform ones."""
    return alpha * p + (1 - alpha) / num_classes


def posterior(x0: torch.Tensor, z: int, t: int) -> torch.Tensor:
    """q(x_{t-1} | x_t = z, x_0) for probabilities x0 (K,) of x_0."""
    joint = forward(one_hot[z], alpha_bar[t] / alpha_bar[t - 1]) * forward(x0, alpha_bar[t - 1])
    return joint / joint.sum()


def bound(x: int, predict) -> torch.Tensor:
    """The exact evidence lower bound of log P(x), summed over all times and all noisy classes."""
    total = -(forward(one_hot[x], alpha_bar[steps]) * (forward(one_hot[x], alpha_bar[steps]) * num_classes).log()).sum()
    for t in range(1, steps + 1):
        for z in range(num_classes):
            q, p = posterior(one_hot[x], z, t), posterior(predict(z, t), z, t)
            term = p[x].log() if t == 1 else -(q * (q / p).log()).sum()
            total = total + forward(one_hot[x], alpha_bar[t])[z] * term
    return total


data = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)


def perfect(_z: int, _t: int) -> torch.Tensor:
    """With one position, there are no others from whose noisy classes x_0 could be predicted."""
    return data


for x in range(num_classes):
    print(f"class {x}: bound {bound(x, perfect):.4f}, truth {data[x].log():.4f}")

# %% [markdown]
# The library's diffusion, with a network that always gives these probabilities, has the same bound:


# %%
class Constant(torch.nn.Module):
    def forward(self, z: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        return data.log().expand(*z.shape, -1)


model = unordinal.Diffusion(Constant(), noise=unordinal.UniformNoise(num_classes, schedule), event_shape=(1,))
x = torch.arange(num_classes).repeat(20_000)[:, None]
theirs = model.elbo(x).double().view(-1, num_classes)
error = theirs.std(0) / len(theirs) ** 0.5
for k in range(num_classes):
    ours = bound(k, perfect)
    print(f"class {k}: ours {ours:.4f}, the library's {theirs[:, k].mean():.4f} ± {error[k]:.4f} (draws of x_t)")
    assert abs(theirs[:, k].mean() - ours) < 5 * error[k] + 1e-5

# %% [markdown]
# *Equations to code* lists where each equation of the paper is.
