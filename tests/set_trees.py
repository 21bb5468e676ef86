"""Small stand-ins of well-known sets with the layout of the originals: one for each recipe."""

import base64
import json

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet

from robustgen.files.text_files import imagenet_classes
from tests.helpers import encode_tagged, photo
from tests.sets.sources.test_clip_folder import put_video

HEIGHT, WIDTH = 64, 80
LABELS = (np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) // 300 % 5).astype(np.uint8)
DEPTH = np.linspace(500, 9000, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint16)
MASK = LABELS % 2 * 255
PAGE = np.where(LABELS[..., None] % 2, 255, [0, 0, 20]).astype(np.uint8)
CITY = "frankfurt/frankfurt_000000_000294"
VOC = "voc/VOCdevkit/VOC2012"
XML = "<annotation><filename>{}.jpg</filename><object><name>dog</name></object></annotation>"
COCO = {
    "images": [{"id": 7, "file_name": "000000000007.jpg", "height": HEIGHT, "width": WIDTH}],
    "annotations": [
        {"id": 1, "image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}
    ],
    "categories": [{"id": 1, "name": "cat"}],
}
BOX = "Car 0.00 0 1.55 10.0 10.0 40.0 40.0 1.5 1.6 3.9 1.0 1.0 9.0 1.6\n"
KITTI = "kitti/Kitti/raw/training"
KITTI_2015 = "kitti2015/Kitti2015/training"
CROPPED, DRIVE = "depth_selection/val_selection_cropped", "2011_09_26_drive_0002_sync"
NUSCENES = "n015-2018__CAM_FRONT__1532402927612460"
ARGOVERSE = "argoverse2/val/0a1b"
WAYMO = "10203656353524179475_7625_000_7645_000"
LABEL = {"_type": "ClassLabel", "names": imagenet_classes()}
MARKET = "Market-1501-v15.09.15"
CELEBA = "celeba/celeba"
PETS = "pets/oxford-iiit-pet"
FOOD = "food/food-101"
# Paths below the working directory, and what is there: text, JSON, an image or a small binary file.
PICTURES, BINARY, PHOTOS = object(), object(), object()
TREES = {
    "COCO": {
        "coco/val2017/000000000007.jpg": PICTURES,
        "coco/annotations/instances_val2017.json": COCO,
    },
    "Pascal VOC": {
        f"{VOC}/JPEGImages/2007_000033.jpg": PICTURES,
        f"{VOC}/Annotations/2007_000033.xml": XML.format("2007_000033"),
        f"{VOC}/SegmentationClass/2007_000033.png": LABELS,
        f"{VOC}/ImageSets/Main/val.txt": "2007_000033\n",
        f"{VOC}/ImageSets/Segmentation/val.txt": "2007_000033\n",
    },
    "Cityscapes": {
        f"cityscapes/leftImg8bit/val/{CITY}_leftImg8bit.png": PICTURES,
        f"cityscapes/gtFine/val/{CITY}_gtFine_labelIds.png": LABELS,
        f"cityscapes/gtFine/val/{CITY}_gtFine_color.png": PAGE,
        f"cityscapes/gtFine/val/{CITY}_gtFine_polygons.json": {"objects": []},
    },
    "BDD100K": {
        "bdd100k/images/100k/val/b1c66a42.jpg": PICTURES,
        "bdd100k/labels/det_20/det_val.json": [{"name": "b1c66a42.jpg", "labels": []}],
        "bdd100k/labels/sem_seg/masks/val/b1c66a42.png": LABELS,
    },
    "KITTI object": {
        f"{KITTI}/image_2/000000.png": PICTURES,
        f"{KITTI}/label_2/000000.txt": BOX,
        f"{KITTI}/calib/000000.txt": "P2: 1 0 0\n",
        f"{KITTI}/velodyne/000000.bin": BINARY,
    },
    "KITTI 2015": {
        **{f"{KITTI_2015}/image_{side}/000000_{time}.png": PICTURES for side in (2, 3) for time in (10, 11)},
        **{f"{KITTI_2015}/disp_{of}/000000_10.png": DEPTH for of in ("occ_0", "noc_0", "occ_1", "noc_1")},
        f"{KITTI_2015}/obj_map/000000_10.png": LABELS,
    },
    "KITTI depth": {
        f"{CROPPED}/image/{DRIVE}_image_0000000005_image_02.png": PICTURES,
        f"{CROPPED}/groundtruth_depth/{DRIVE}_groundtruth_depth_0000000005_image_02.png": DEPTH,
        f"{CROPPED}/velodyne_raw/{DRIVE}_velodyne_raw_0000000005_image_02.png": DEPTH,
        f"{CROPPED}/intrinsics/{DRIVE}_image_0000000005_image_02.txt": "1",
    },
    "nuScenes": {
        f"nuscenes/samples/CAM_FRONT/{NUSCENES}.jpg": PICTURES,
        "nuscenes/samples/LIDAR_TOP/n015__LIDAR_TOP__1.pcd.bin": BINARY,
        "nuscenes/maps/36092f0b03a857c6a3403e25b4b7aab3.png": MASK,
        "nuscenes/v1.0-mini/sample_data.json": [{"filename": f"samples/CAM_FRONT/{NUSCENES}.jpg"}],
    },
    "Argoverse 2": {
        f"{ARGOVERSE}/sensors/cameras/ring_front_center/315969904949927216.jpg": PICTURES,
        f"{ARGOVERSE}/sensors/lidar/315969904359876000.feather": BINARY,
        f"{ARGOVERSE}/annotations.feather": BINARY,
        f"{ARGOVERSE}/map/log_map_archive_0a1b.json": {},
    },
    "DOTA": {
        "dota/val/images/P0003.png": PICTURES,
        "dota/val/labelTxt/P0003.txt": "gsd:0.1\n1 1 9 1 9 9 1 9 plane 0\n",
    },
    "DocLayNet": {
        "DocLayNet/PNG/0a1b.png": PAGE,
        "DocLayNet/COCO/val.json": COCO | {"images": [COCO["images"][0] | {"file_name": "0a1b.png"}]},
    },
    "Market-1501": {
        **{f"{MARKET}/{part}/0002_c1s1_000451_03.jpg": PICTURES for part in ("query", "bounding_box_test")},
        f"{MARKET}/gt_query/0002_c1s1_000451_03_good.mat": BINARY,
        f"{MARKET}/readme.txt": "Market-1501",
    },
    "CelebA": {
        **{f"{CELEBA}/img_align_celeba/00000{number}.jpg": PICTURES for number in (1, 2)},
        f"{CELEBA}/list_eval_partition.txt": "000001.jpg 2\n000002.jpg 2\n",
        f"{CELEBA}/identity_CelebA.txt": "000001.jpg 7\n000002.jpg 8\n",
        f"{CELEBA}/list_bbox_celeba.txt": "2\nimage_id x_1 y_1\n000001.jpg 1 2\n000002.jpg 1 2\n",
        f"{CELEBA}/list_landmarks_align_celeba.txt": "2\nnose_x nose_y\n000001.jpg 9 9\n000002.jpg 9 8\n",
        f"{CELEBA}/list_attr_celeba.txt": "2\nSmiling Young\n000001.jpg  1 -1\n000002.jpg  1 -1\n",
    },
    "NYU (DenseDepth)": {
        "nyu/data/nyu2_test/00000_colors.png": PICTURES,
        "nyu/data/nyu2_test/00000_depth.png": DEPTH,
        "nyu/data/nyu2_test.csv": "data/nyu2_test/00000_colors.png,data/nyu2_test/00000_depth.png\n",
    },
    "DRIVE": {
        "DRIVE/test/images/01_test.tif": PICTURES,
        "DRIVE/test/mask/01_test_mask.gif": MASK,
        "DRIVE/test/1st_manual/01_manual1.gif": MASK,
    },
    "CHASE_DB1": {
        "CHASEDB1/Image_01L.jpg": PICTURES,
        **{f"CHASEDB1/Image_01L_{of}HO.png": MASK for of in ("1st", "2nd")},
    },
    "ISIC 2018": {
        "isic/ISIC2018_Task1-2_Validation_Input/ISIC_0012255.jpg": PICTURES,
        "isic/ISIC2018_Task1_Validation_GroundTruth/ISIC_0012255_segmentation.png": MASK,
    },
    "Oxford-IIIT Pet": {
        f"{PETS}/images/Abyssinian_201.jpg": PICTURES,
        f"{PETS}/annotations/test.txt": "Abyssinian_201 1 1 1\n",
        f"{PETS}/annotations/trimaps/Abyssinian_201.png": LABELS % 3 + 1,
    },
    "Food-101": {
        f"{FOOD}/images/apple_pie/1011328.jpg": PICTURES,
        f"{FOOD}/meta/test.txt": "apple_pie/1011328\n",
        f"{FOOD}/meta/test.json": {"apple_pie": ["apple_pie/1011328"]},
        f"{FOOD}/meta/classes.txt": "apple_pie\n",
    },
    "Flickr30k": {
        "flickr30k/flickr30k-images/1000092795.jpg": PICTURES,
        "flickr30k/results_20130124.token": "1000092795.jpg#0\tTwo men .\n",
    },
    "EuroSAT": {f"EuroSAT/2750/{name}/{name}_1.jpg": PHOTOS for name in ("Forest", "River")},
    "PACS": {
        f"PACS/{part}/{name}/0.jpg": PHOTOS for part in ("photo", "sketch") for name in ("dog", "horse")
    },
    "DAVIS 2017": {
        "DAVIS/JPEGImages/480p/bear/00000.jpg": PICTURES,
        "DAVIS/Annotations/480p/bear/00000.png": LABELS,
        "DAVIS/ImageSets/2017/val.txt": "bear\n",
    },
    "MOT17": {
        **{f"MOT17/train/MOT17-02-FRCNN/img1/{number:06d}.jpg": PICTURES for number in (1, 2)},
        "MOT17/train/MOT17-02-FRCNN/gt/gt.txt": "1,1,9,9,9,9,1,1,1\n",
        "MOT17/train/MOT17-02-FRCNN/seqinfo.ini": "[Sequence]\nframeRate=30\nseqLength=2\n",
    },
    "Kinetics": {f"kinetics/val/{name}/0_000001_000011.mp4": PHOTOS for name in ("archery", "bowling")},
    "Something-Something V2": {
        "ssv2/20bn-something-something-v2/1.webm": PICTURES,
        "ssv2/labels/validation.json": [{"id": "1", "template": "Pushing [something]"}],
    },
    "UCF101": {
        "ucf/UCF-101/Archery/v_Archery_g01_c01.avi": PICTURES,
        "ucf/ucfTrainTestlist/testlist01.txt": "Archery/v_Archery_g01_c01.avi\n",
    },
    "HMDB51": {
        "hmdb/hmdb51/wave/a.avi": PICTURES,
        "hmdb/testTrainMulti_7030_splits/wave_test_split1.txt": "a.avi 2\n",
    },
    "MMBench": {"MMBench_DEV_EN.tsv": None},
    "VQA in Parquet": {
        "vqa/validation-00000-of-00001.parquet": lambda image: pa.table(
            {"question": ["What?"], "image": [image], "answers": [["cat"]]}
        )
    },
    "ImageNet from the Hub": {
        "imagenet-1k/data/validation-00000-of-00014.parquet": lambda image: pa.table(
            {"image": [image | {"path": "ILSVRC2012_val_00000293_n01440764.JPEG"}], "label": [0]}
        ).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {"label": LABEL}}})})
    },
    "Waymo Open v2": {
        f"waymo/validation/camera_image/{WAYMO}.parquet": lambda image: pa.table(
            {
                "key.segment_context_name": [WAYMO],
                "key.camera_name": [1],
                "[CameraImageComponent].image": [image["bytes"]],
            }
        )
    },
}


def put_tree(root, name):
    """Write the stand-in of a recipe; return the paths of its pictures."""
    for number, (path, content) in enumerate(TREES[name].items()):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith((".mp4", ".avi", ".webm")):
            put_video(file)
        elif path.endswith(".tsv"):
            picture = base64.b64encode(encode_tagged(photo(HEIGHT, WIDTH), "JPEG")).decode()
            file.write_text(f"index\timage\tquestion\n1\t{picture}\tWhat?\n")
        elif path.endswith(".parquet"):
            image = {"bytes": encode_tagged(photo(HEIGHT, WIDTH), "JPEG"), "path": "1.jpg"}
            parquet.write_table(content(image), file)
        elif isinstance(content, np.ndarray):
            Image.fromarray(content).save(file)
        elif content in (PICTURES, PHOTOS):
            Image.fromarray(photo(HEIGHT, WIDTH, number)).save(file)
        elif content is BINARY:
            file.write_bytes(bytes(range(64)))
        else:
            file.write_text(content if isinstance(content, str) else json.dumps(content))
    return [path for path, content in TREES[name].items() if content is PICTURES or "/PNG/" in path]
