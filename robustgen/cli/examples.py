"""Two examples for the end of each command's help."""

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "make-c": (
        "robustgen make-c --dataset imagenet --source /data/imagenet/val",
        "robustgen make-c --dataset folder --source photos --corruptions fog,snow --severities 1,3",
    ),
    "make-p": (
        "robustgen make-p --dataset imagenet --source /data/imagenet/val",
        "robustgen make-p --dataset folder --source photos --perturbations tilt,snow --limit 10",
    ),
    "run": (
        "robustgen run plan.json",
        "robustgen run plan.json --source /mnt/val --output /mnt/out --jobs all",
    ),
    "verify": (
        "robustgen verify out/imagenet-c",
        "robustgen verify out/imagenet-c --deep 20",
    ),
    "list": (
        "robustgen list glass_blur",
        "robustgen list --keys /data/imagenet/val",
    ),
    "config": (
        "robustgen config --dataset imagenet --source /data/imagenet/val",
        "robustgen config --schema",
    ),
    "croissant": (
        "robustgen croissant out/imagenet-c --rai fields.yaml",
        "robustgen croissant s3://bucket/imagenet-c",
    ),
    "fetch": (
        "robustgen fetch",
        "robustgen fetch frost --wheel imagecorruptions-1.1.2-py3-none-any.whl",
    ),
    "warm": (
        "robustgen warm",
        "robustgen warm --jobs 4",
    ),
    "preview": (
        "robustgen preview photo.jpg --output photo.png",
        "robustgen preview photo.jpg --output photo.html",
    ),
    "report": (
        "robustgen report out/imagenet-c",
        "robustgen report out/imagenet-p --images 5 --output report.html",
    ),
    "compare": (
        "robustgen compare out/imagenet-c /data/ImageNet-C",
        "robustgen compare out/imagenet-c /data/ImageNet-C --output compare.html",
    ),
    "calibrate": (
        "robustgen calibrate --dataset imagenet",
        "robustgen calibrate --dataset imagenet --for-size 384 --output parameters-384.yaml",
    ),
    "evaluate": (
        "robustgen evaluate --dataset imagenet --model resnet50.onnx --output preds/resnet50",
        "robustgen evaluate --dataset cifar-10 --model mymodel:build --input-size 32 --output preds/mine",
    ),
    "predict": (
        "robustgen predict out/imagenet-c --model resnet50.onnx --output preds/resnet50",
        "robustgen predict /data/ImageNet-C --model timm:resnet50 --output preds/timm",
    ),
    "score": (
        "robustgen score preds/resnet50",
        "robustgen score preds/resnet50 preds/vgg19 --output scores.html --compare-with published",
    ),
    "score-detection": (
        "robustgen score-detection --annotations boxes.json --results 'preds/{corruption}/{severity}.json'"
        " --clean clean.json",
        "robustgen score-detection --annotations boxes.json --results 'preds/{corruption}/{severity}.json'"
        " --clean clean.json --compare-with published",
    ),
    "score-segmentation": (
        "robustgen score-segmentation --truth truth --results 'preds/{corruption}/{severity}' --clean clean",
        "robustgen score-segmentation --truth truth --results 'preds/{corruption}/{severity}' --clean clean"
        " --reference deeplab.json",
    ),
    "stream ccc": (
        "robustgen stream ccc --source val --accuracy-table accuracies.json",
        "robustgen stream ccc --source val --accuracy-table accuracies.json --format webdataset",
    ),
    "stream measure": (
        "robustgen stream measure --source val --model resnet50.onnx",
        "robustgen stream measure --source val --model resnet50.onnx --output accuracies.json",
    ),
    "score-ood": (
        "robustgen score-ood --id preds/mine/clean.npz --ood preds/ood/clean.npz",
        "robustgen score-ood --id preds/mine/clean.npz --ood preds/ood/clean.npz --confidence energy",
    ),
    "stream": (
        "robustgen stream --dataset cifar-10 --setting continual",
        "robustgen stream --dataset cifar-10 --setting correlated --output stream.jsonl",
    ),
    "make-augmix": (
        "robustgen make-augmix --source train --output train-augmix",
        "robustgen make-augmix --source train --output train-augmix --copies 2",
    ),
    "filter-a": (
        "robustgen filter-a candidates --model resnet50.onnx --classes wnids.txt --output out/a",
        "robustgen filter-a candidates --output out/a --accept accepted.txt",
    ),
    "filter-o": (
        "robustgen filter-o candidates --model resnet50.onnx --classes wnids.txt --output out/o",
        "robustgen filter-o candidates --output out/o --accept accepted.txt",
    ),
    "make-icons": (
        "robustgen make-icons --style google=DIR --style twitter=DIR --output out/icons",
        "robustgen make-icons --style google=DIR --style twitter=DIR --size 64 --output out/icons-64",
    ),
    "make-subtypes": (
        "robustgen make-subtypes /data/imagenet22k --output out/subtypes",
        "robustgen make-subtypes /data/imagenet22k --links --output out/subtypes",
    ),
    "preprocess": (
        "robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe",
        "robustgen preprocess clahe --help",
    ),
    "preprocess clahe": (
        "robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe",
        "robustgen preprocess clahe photos out/photos-clahe --clip-limit 4 --tiles 16",
    ),
}
