"""Models of images, by what holds them: what they take, what they give, and whether that fits a data set.

base         what all kinds have in common
onnx         ONNX Runtime: model.onnx
pytorch      PyTorch: model.pt2, timm:NAME, torchvision:NAME@FILE, package.module:factory
exported     whether a .pt2 can run code
opening      from the name of a model to the model
classifier   a model with its preprocessing
"""
