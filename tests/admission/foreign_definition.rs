//! Another product has defined a kind of ours already.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use metalform::model::error_chain::error_chain;

use crate::api_server::ApiServer;
use crate::shared::shared;

/// As machine-controller defines it, in short.
const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: machines.cluster.k8s.io
  annotations: { api-approved.kubernetes.io: 'unapproved, legacy API', meta.helm.sh/release-name: machine-controller }
  labels: { app.kubernetes.io/managed-by: Helm }
spec:
  group: cluster.k8s.io
  scope: Namespaced
  names: { kind: Machine, plural: machines, shortNames: [ma] }
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
";

/// What an installation beside it results in; both definitions are gone afterwards.
pub async fn install(api: &ApiServer) -> String {
    let definitions: Api<CustomResourceDefinition> = Api::all(api.admin().await);
    let definition = serde_saphyr::from_str(DEFINITION).unwrap();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let refused = api.install().await.err().map(|error| error_chain(&error)).unwrap_or_default();
    let present = definitions.list_metadata(&Default::default()).await.unwrap();
    let present: Vec<_> = present.items.into_iter().filter_map(|one| one.metadata.name).collect();
    assert_eq!(present, ["machines.cluster.k8s.io"], "nothing of ours");
    definitions.delete("machines.cluster.k8s.io", &DeleteParams::default()).await.unwrap();
    while definitions.get_metadata_opt("machines.cluster.k8s.io").await.unwrap().is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    refused
}

#[test]
fn a_definition_of_another_product_is_refused_with_what_to_do() {
    let Some(shared) = shared() else { return };
    insta::assert_snapshot!(shared.beside_another, @"CustomResourceDefinition machines.cluster.k8s.io is not metalform's (Helm release machine-controller), and no object was applied; uninstall that product and run `kubectl delete crd machines.cluster.k8s.io`, which deletes its objects too, or, if the definition is metalform's, run `kubectl label crd machines.cluster.k8s.io app.kubernetes.io/managed-by=metalform`");
}
