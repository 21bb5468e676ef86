"""The loop of docs/use/streams.md runs as it stands, as the commands do."""

from tests.helpers import cli
from tests.torch.test_torch_docs import code, run, torch  # noqa: F401


def test_the_loop_over_a_stream_gets_its_images_in_order(torch):  # noqa: F811
    from torchvision.transforms.v2 import PILToTensor

    flags = ("--setting", "gradual", "--corruptions", "fog", "--output", "continual.jsonl")
    cli("stream", "--source", "val", *flags)
    seen = []
    changes = {"num_workers=8": "num_workers=0"}
    names = run(code("Playing", "streams.md"), changes, preprocess=PILToTensor(), adapt=seen.append)
    assert torch.equal(torch.cat(seen), torch.stack([image for image, _ in names["dataset"]]))
    assert [names["dataset"].variant(index).level for index in range(0, 36, 4)] == [1, 2, 3, 4, 5, 4, 3, 2, 1]
