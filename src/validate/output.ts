import { groupOf } from '../contract/object.js';
import type { AnyObject, KubernetesObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { writeYaml } from '../values/yaml.js';

/** The manifests of one custom resource. */
export interface ManifestFile {
  /** `<namespace>.<kind>.<group>.<name>.yaml` */
  readonly name: string;
  /** YAML in which each document begins with a line `---`, so that files can be joined as they are. */
  readonly text: string;
}

/**
 * The file that a custom resource is rendered to, e.g. `shop.appservice.kosmos.io.web.yaml`. The namespace is
 * `default` where none is given, and `cluster` for kinds that have no namespace.
 */
export function fileName(type: ResourceType, cr: KubernetesObject): string {
  const namespace = type.namespaced ? (cr.metadata.namespace ?? 'default') : 'cluster';
  return `${namespace}.${type.kind.toLowerCase()}.${groupOf(type.apiVersion)}.${cr.metadata.name}.yaml`;
}

/**
 * The file of what many custom resources of a kind are rendered to at once, e.g.
 * `streamingress.nginx-stream.example.yaml`.
 */
export function kindFileName(type: ResourceType): string {
  return `${type.kind.toLowerCase()}.${groupOf(type.apiVersion)}.yaml`;
}

/**
 * Returns objects as YAML, as {@link writeYaml} does.
 *
 * Each document begins with `---`, unlike those of cdk8s, whose CLI joins files without a separator.
 * @see https://github.com/cdk8s-team/cdk8s-cli/issues/943
 */
export function manifestText(objects: readonly AnyObject[]): string {
  return objects.map((object) => `---\n${writeYaml(object)}`).join('');
}
