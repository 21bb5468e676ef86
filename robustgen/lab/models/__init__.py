"""Models of images, by file format or library: inputs, outputs, and whether they match a data set.

preprocessing   mean, std, size, layout of a model
base            shared by all models; a model with its preprocessing; functions of arrays
onnx            ONNX Runtime: model.onnx
pytorch         PyTorch: model.pt2, timm:NAME, torchvision:NAME@FILE, package.module:factory
opening         from the name of a model to the model
detectors       detectors of torchvision, and user functions
masks           masks of objects, in COCO's form
"""
