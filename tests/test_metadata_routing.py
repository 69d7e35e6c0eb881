"""Arguments that scikit-learn hands on: what is asked for, and what arrives."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

from trellis import ChainCRF, GraphCRF
from trellis.errors import DataError

X = [["the", "cat"], ["a", "dog"]] * 4
Y = [["D", "N"]] * 8


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_what_can_be_asked_for():
    requests = ChainCRF().get_metadata_routing()
    assert {"sample_weight", "edges", "dev"} <= set(requests.fit.requests)
    assert set(requests.score.requests) >= {"sample_weight", "metric"}
    assert all(alias is None for alias in requests.fit.requests.values())
    crf = ChainCRF().set_fit_request(sample_weight=True).set_score_request(sample_weight="w")
    for model in (crf, clone(crf)):
        found = model.get_metadata_routing()
        assert found.fit.requests["sample_weight"] is True
        assert found.score.requests["sample_weight"] == "w"
    crf.set_predict_request(constraints=False).set_partial_fit_request(classes=True)
    assert crf.get_metadata_routing().predict.requests["constraints"] is False


def test_what_is_not_there_cannot_be_asked_for():
    with pytest.raises(DataError, match="fit has no argument 'weight' to ask for; it has edges"):
        ChainCRF().set_fit_request(weight=True)


def test_weights_arrive_in_a_search():
    crf = ChainCRF(random_state=0, max_passes=2)
    crf.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    labels = [["D", "N"]] * 4 + [["N", "D"]] * 4
    weight = np.array([1.0] * 4 + [1e-6] * 4)
    search = GridSearchCV(crf, {"l2": [0.1]}, cv=2, refit=True)
    search.fit(X, labels, sample_weight=weight)
    assert search.predict(X[:1]) == [["D", "N"]]


def test_edges_are_cut_with_the_samples():
    features = [np.array([[float(i % 2)], [1.0 - i % 2]]) for i in range(8)]
    labels = [[i % 2, 1 - i % 2] for i in range(8)]
    crf = GraphCRF(random_state=0).set_fit_request(edges=True).set_score_request(edges=True)
    edges = [[(0, 1)]] * 8
    found = cross_validate(crf, features, labels, cv=2, params={"edges": edges})
    assert found["test_score"].tolist() == [1.0, 1.0]
