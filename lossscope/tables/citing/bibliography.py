"""The papers that the `Source:` lines of probes and objectives name, with their known fields only."""

from __future__ import annotations

from .paper import Paper

_CVPR = "IEEE/CVF Conference on Computer Vision and Pattern Recognition"
_ECCV = "European Conference on Computer Vision"
_ICML = "International Conference on Machine Learning"
_NEURIPS = "Advances in Neural Information Processing Systems"

PAPERS = (
    Paper(
        "bleeker2022", r"Bleeker & de Rijke 2022", "inproceedings", "Bleeker, Maurits and de Rijke, Maarten",
        "Do Lessons from Metric Learning Generalize to Image-Caption Retrieval?", 2022,
        booktitle="European Conference on Information Retrieval",
    ),
    Paper(
        "xuan2023", r"Xuan & Chen 2023", "inproceedings", "Xuan, Hong and Chen, Xi",
        "Dissecting Deep Metric Learning Losses for Image-Text Retrieval", 2023,
        booktitle="IEEE/CVF Winter Conference on Applications of Computer Vision",
    ),
    Paper(
        "li2022", r"Li et al\. 2022", "misc",
        "Li, Zheng and Guo, Caili and Wang, Xin and Feng, Zerun and Hwang, Jenq-Neng and Du, Zhongtian",
        "Unified Loss of Pair Similarity Optimization for Vision-Language Retrieval", 2022, note="Preprint",
    ),
    Paper(
        "wang2020", r"Wang & Isola 2020", "inproceedings", "Wang, Tongzhou and Isola, Phillip",
        "Understanding Contrastive Representation Learning through Alignment and Uniformity on the Hypersphere", 2020,
        booktitle=_ICML,
    ),
    Paper(
        "liang2022", r"Liang et al\. 2022", "inproceedings",
        "Liang, Victor Weixin and Zhang, Yuhui and Kwon, Yongchan and Yeung, Serena and Zou, James",
        "Mind the Gap: Understanding the Modality Gap in Multi-modal Contrastive Representation Learning", 2022,
        booktitle=_NEURIPS,
    ),
    Paper(
        "garrido2023", r"Garrido et al\. 2023", "inproceedings",
        "Garrido, Quentin and Balestriero, Randall and Najman, Laurent and LeCun, Yann",
        "RankMe: Assessing the Downstream Performance of Pretrained Self-Supervised Representations by Their Rank",
        2023, booktitle=_ICML,
    ),
    Paper(
        "roy2007", r"Roy & Vetterli 2007", "inproceedings", "Roy, Olivier and Vetterli, Martin",
        "The Effective Rank: A Measure of Effective Dimensionality", 2007,
        booktitle="European Signal Processing Conference",
    ),
    Paper(
        "radovanovic2010", r"Radovanović et al\. 2010", "article",
        "Radovanović, Miloš and Nanopoulos, Alexandros and Ivanović, Mirjana",
        "Hubs in Space: Popular Nearest Neighbors in High-Dimensional Data", 2010,
        journal="Journal of Machine Learning Research",
    ),
    Paper("kish1965", r"Kish 1965", "book", "Kish, Leslie", "Survey Sampling", 1965, publisher="Wiley"),
    Paper(
        "hill1973", r"Hill 1973", "article", "Hill, M. O.",
        "Diversity and Evenness: A Unifying Notation and Its Consequences", 1973, journal="Ecology",
    ),
    Paper(
        "brown2020", r"Brown et al\. 2020", "inproceedings",
        "Brown, Andrew and Xie, Weidi and Kalogeiton, Vicky and Zisserman, Andrew",
        "Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval", 2020, booktitle=_ECCV,
    ),
    Paper(
        "yeh2022", r"Yeh et al\. 2022", "inproceedings",
        "Yeh, Chun-Hsiao and Hong, Cheng-Yao and Hsu, Yen-Chi and Liu, Tyng-Luh and Chen, Yubei and LeCun, Yann",
        "Decoupled Contrastive Learning", 2022, booktitle=_ECCV,
    ),
    Paper(
        "wei2021meta", r"Wei et al\. 2021 \(Meta", "inproceedings",
        "Wei, Jiwei and Xu, Xing and Wang, Zheng and Wang, Guoqing",
        "Meta Self-Paced Learning for Cross-Modal Matching", 2021,
        booktitle="ACM International Conference on Multimedia",
    ),
    Paper(
        "wei2021", r"Wei et al\. 2021, relative", "article",
        "Wei, Jiwei and Yang, Yang and Xu, Xing and Zhu, Xiaofeng and Shen, Heng Tao",
        "Universal Weighting Metric Learning for Cross-Modal Retrieval", 2021,
        journal="IEEE Transactions on Pattern Analysis and Machine Intelligence",
    ),
    Paper(
        "wei2020", r"Wei et al\. 2020", "inproceedings",
        "Wei, Jiwei and Xu, Xing and Yang, Yang and Ji, Yanli and Wang, Zheng and Shen, Heng Tao",
        "Universal Weighting Metric Learning for Cross-Modal Matching", 2020, booktitle=_CVPR,
    ),
    Paper(
        "wang2019multi", r"Wang et al\. 2019(, general pair weighting| \(multi-similarity\))", "inproceedings",
        "Wang, Xun and Han, Xintong and Huang, Weilin and Dong, Dengke and Scott, Matthew R.",
        "Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning", 2019, booktitle=_CVPR,
    ),
    Paper(
        "wang2019ranked", r"Wang et al\. 2019, ranked list", "inproceedings",
        "Wang, Xinshao and Hua, Yang and Kodirov, Elyor and Hu, Guosheng and Garnier, Romain and Robertson, Neil M.",
        "Ranked List Loss for Deep Metric Learning", 2019, booktitle=_CVPR,
    ),
    Paper(
        "vandenoord2018", r"van den Oord et al\. 2018", "misc",
        "van den Oord, Aaron and Li, Yazhe and Vinyals, Oriol",
        "Representation Learning with Contrastive Predictive Coding", 2018, note="Preprint",
    ),
    Paper(
        "radford2021", r"Radford et al\. 2021", "inproceedings",
        "Radford, Alec and Kim, Jong Wook and Hallacy, Chris and Ramesh, Aditya and Goh, Gabriel and Agarwal, Sandhini "
        "and Sastry, Girish and Askell, Amanda and Mishkin, Pamela and Clark, Jack and others",
        "Learning Transferable Visual Models from Natural Language Supervision", 2021, booktitle=_ICML,
    ),
    Paper(
        "chen2020", r"Chen, Deng & Luo 2020", "inproceedings", "Chen, Tianlang and Deng, Jiajun and Luo, Jiebo",
        "Adaptive Offline Quintuplet Loss for Image-Text Matching", 2020, booktitle=_ECCV,
    ),
    Paper(
        "zhai2023", r"Zhai et al\. 2023", "inproceedings",
        "Zhai, Xiaohua and Mustafa, Basil and Kolesnikov, Alexander and Beyer, Lucas",
        "Sigmoid Loss for Language Image Pre-Training", 2023,
        booktitle="IEEE/CVF International Conference on Computer Vision",
    ),
    Paper(
        "faghri2018", r"Faghri et al\. 2018", "inproceedings",
        "Faghri, Fartash and Fleet, David J. and Kiros, Jamie Ryan and Fidler, Sanja",
        "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives", 2018,
        booktitle="British Machine Vision Conference",
    ),
    Paper(
        "huang2021", r"Huang et al\. 2021", "inproceedings",
        "Huang, Zhenyu and Niu, Guocheng and Liu, Xiao and Ding, Wenbiao and Xiao, Xinyan and Wu, Hua and Peng, Xi",
        "Learning with Noisy Correspondence for Cross-modal Matching", 2021, booktitle=_NEURIPS,
    ),
    Paper(
        "ohsong2016", r"Oh Song et al\. 2016", "inproceedings",
        "Oh Song, Hyun and Xiang, Yu and Jegelka, Stefanie and Savarese, Silvio",
        "Deep Metric Learning via Lifted Structured Feature Embedding", 2016,
        booktitle="IEEE Conference on Computer Vision and Pattern Recognition",
    ),
    Paper(
        "hermans2017", r"Hermans, Beyer & Leibe 2017", "misc", "Hermans, Alexander and Beyer, Lucas and Leibe, Bastian",
        "In Defense of the Triplet Loss for Person Re-Identification", 2017, note="Preprint",
    ),
    Paper(
        "zhang2018", r"Zhang & Lu 2018", "inproceedings", "Zhang, Ying and Lu, Huchuan",
        "Deep Cross-Modal Projection Learning for Image-Text Matching", 2018, booktitle=_ECCV,
    ),
    Paper(
        "yi2014", r"Yi et al\. 2014", "inproceedings", "Yi, Dong and Lei, Zhen and Liao, Shengcai and Li, Stan Z.",
        "Deep Metric Learning for Person Re-Identification", 2014,
        booktitle="International Conference on Pattern Recognition",
    ),
    Paper(
        "ustinova2016", r"Ustinova & Lempitsky 2016", "inproceedings", "Ustinova, Evgeniya and Lempitsky, Victor",
        "Learning Deep Embeddings with Histogram Loss", 2016, booktitle=_NEURIPS,
    ),
    Paper(
        "sun2020", r"Sun et al\. 2020", "inproceedings",
        "Sun, Yifan and Cheng, Changmao and Zhang, Yuhan and Zhang, Chi and Zheng, Liang and Wang, Zhongdao and "
        "Wei, Yichen",
        "Circle Loss: A Unified Perspective of Pair Similarity Optimization", 2020, booktitle=_CVPR,
    ),
    Paper(
        "hadsell2006", r"Hadsell, Chopra & LeCun 2006", "inproceedings",
        "Hadsell, Raia and Chopra, Sumit and LeCun, Yann",
        "Dimensionality Reduction by Learning an Invariant Mapping", 2006,
        booktitle="IEEE Conference on Computer Vision and Pattern Recognition",
    ),
    Paper(
        "sohn2016", r"Sohn 2016", "inproceedings", "Sohn, Kihyuk",
        "Improved Deep Metric Learning with Multi-class N-pair Loss Objective", 2016, booktitle=_NEURIPS,
    ),
    Paper(
        "khosla2020", r"Khosla et al\. 2020", "inproceedings",
        "Khosla, Prannay and Teterwak, Piotr and Wang, Chen and Sarna, Aaron and Tian, Yonglong and Isola, Phillip and "
        "Maschinot, Aaron and Liu, Ce and Krishnan, Dilip",
        "Supervised Contrastive Learning", 2020, booktitle=_NEURIPS,
    ),
    Paper(
        "deng2019", r"Deng et al\. 2019", "inproceedings",
        "Deng, Jiankang and Guo, Jia and Xue, Niannan and Zafeiriou, Stefanos",
        "ArcFace: Additive Angular Margin Loss for Deep Face Recognition", 2019, booktitle=_CVPR,
    ),
    Paper(
        "wang2018", r"Wang et al\. 2018", "inproceedings",
        "Wang, Hao and Wang, Yitong and Zhou, Zheng and Ji, Xing and Gong, Dihong and Zhou, Jingchao and Li, Zhifeng "
        "and Liu, Wei",
        "CosFace: Large Margin Cosine Loss for Deep Face Recognition", 2018, booktitle=_CVPR,
    ),
    Paper(
        "kim2020", r"Kim et al\. 2020", "inproceedings",
        "Kim, Sungyeon and Kim, Dongwon and Cho, Minsu and Kwak, Suha",
        "Proxy Anchor Loss for Deep Metric Learning", 2020, booktitle=_CVPR,
    ),
)  # fmt: skip
