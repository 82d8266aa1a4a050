"""Clients against a running `earnest serve`: ADDRESS KEY MODEL_FOLDER CLIENT... (see serve-clients.sh)."""
import json
import math
import os
import pathlib
import sys
import tempfile

ADDRESS, KEY, MODEL, *CLIENTS = sys.argv[1:]
NAME = pathlib.Path(MODEL).name
SUMS = [(12, 30), (7, 8), (125, 250), (41, 18), (9, 90), (3, 4)]


def check(what, holds, found=""):
    if not holds:
        sys.exit(f"FAILED: {what} {found}")
    print(f"  {what}")


def openai_client():
    import openai

    client = openai.OpenAI(base_url=f"{ADDRESS}/v1", api_key=KEY, max_retries=0)
    check("models are listed", [model.id for model in client.models.list()] == [NAME])
    check("a model is retrieved", client.models.retrieve(NAME).id == NAME)
    ask = lambda **more: client.completions.create(model=NAME, prompt="12 + 30 =", max_tokens=6, temperature=0, **more)
    whole = ask()
    parts = list(ask(stream=True, stream_options={"include_usage": True}))
    text = "".join(part.choices[0].text for part in parts if part.choices)
    check("a stream says what a whole answer says", text == whole.choices[0].text != "", (text, whole))
    check("a stream ends with its usage", parts[-1].usage.total_tokens == whole.usage.total_tokens, parts[-1])
    scored = ask(logprobs=2, n=2).choices[1].logprobs
    check("log-probabilities come with offsets", 0 < len(scored.tokens) == len(scored.text_offset), scored)
    messages = [{"role": "user", "content": "12 + 30 ="}]
    chat = client.chat.completions.create(model=NAME, messages=messages, max_tokens=6, temperature=0, logprobs=True)
    check("chat answers", chat.choices[0].message.content == whole.choices[0].text, chat)
    check("chat has log-probabilities", len(chat.choices[0].logprobs.content) == chat.usage.completion_tokens)

    def refused(error, call):
        try:
            call()
        except error as caught:
            return caught
        sys.exit(f"FAILED: {error.__name__} was expected")

    wrong = refused(openai.BadRequestError, lambda: ask(stop=["1", "2", "3", "4", "5"]))
    check("a fifth stop is refused by name", wrong.param == "stop", wrong)
    formatted = {"response_format": {"type": "json_object"}}
    wrong = refused(openai.BadRequestError, lambda: ask(extra_body=formatted))
    check("a format is refused by name", wrong.param == "response_format", wrong)
    wrong = refused(openai.NotFoundError, lambda: client.completions.create(model="gpt-x", prompt="1"))
    check("an unknown model is not found", wrong.code == "model_not_found", wrong)
    stranger = openai.OpenAI(base_url=f"{ADDRESS}/v1", api_key="wrong", max_retries=0)
    long = "1 + 2 = 3, " * 500_000
    refused(openai.AuthenticationError, lambda: stranger.completions.create(model=NAME, prompt=long))
    check("a wrong key is refused, also with a long body", True)


def lm_eval_client():
    """Log-likelihoods of lm-evaluation-harness over `local-completions`, beside sums of the server's own log-probabilities."""
    os.environ["OPENAI_API_KEY"] = KEY
    os.environ["HF_HUB_OFFLINE"] = "1"
    import openai
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    model = LocalCompletionsAPI(
        base_url=f"{ADDRESS}/v1/completions", model=NAME, tokenizer=MODEL, tokenizer_backend="huggingface", num_concurrent=4
    )
    pairs = [(f"{a} + {b} =", f" {answer}") for a, b in SUMS for answer in (a + b, a + b + 1)]
    requests = [Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(pairs)]
    found = model.loglikelihood(requests)
    check("as many log-likelihoods as continuations", len(found) == len(pairs))
    client = openai.OpenAI(base_url=f"{ADDRESS}/v1", api_key=KEY, max_retries=0)
    for (context, continuation), (loglikelihood, greedy) in zip(pairs, found):
        ids = model.tok_encode(context + continuation)
        start = len(model.tok_encode(context))
        echoed = client.completions.create(model=NAME, prompt=ids, max_tokens=0, echo=True, logprobs=1)
        direct = sum(echoed.choices[0].logprobs.token_logprobs[start:])
        check(f"{context + continuation!r}: {loglikelihood:.4f}", math.isclose(loglikelihood, direct, abs_tol=1e-4), direct)
        written = client.completions.create(
            model=NAME, prompt=ids[:start], max_tokens=len(ids) - start, temperature=0, extra_body={"return_token_ids": True}
        )
        check(f"  greedy: {greedy}", greedy == (written.choices[0].token_ids == ids[start:]), written)
    until = [Instance("generate_until", {}, (f"{a} + {b} =", {"until": ["\n"], "max_gen_toks": 8}), 0) for a, b in SUMS]
    texts = model.generate_until(until)
    check("it generates", len(texts) == len(SUMS) and all(isinstance(text, str) for text in texts), texts)


def inspect_client():
    os.environ["OPENAI_API_KEY"] = KEY
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    model = get_model(
        f"openai-api/earnest/{NAME}",
        base_url=f"{ADDRESS}/v1",
        api_key=KEY,
        config=GenerateConfig(max_tokens=8, temperature=0.0),
    )
    task = inspect_ai.Task(
        dataset=[Sample(input=f"{a} + {b} =", target=str(a + b)) for a, b in SUMS], solver=generate(), scorer=includes()
    )
    with tempfile.TemporaryDirectory() as logs:
        (log,) = inspect_ai.eval(task, model=model, log_dir=logs, display="none")
    check("an evaluation ends well", log.status == "success", log.error)
    check("all samples are scored", log.results.completed_samples == len(SUMS), json.dumps(log.results.model_dump(), default=str))


TRIED = {"openai": openai_client, "lm-eval": lm_eval_client, "inspect": inspect_client}
for name in CLIENTS:
    print(f"{name}:")
    TRIED[name]()
