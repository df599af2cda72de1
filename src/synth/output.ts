import { Yaml } from 'cdk8s';
import { Document, visit } from 'yaml';
import { groupOf } from '../contract/object.js';
import type { AnyObject, KubernetesObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';

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
 * Objects as YAML that parsers of 1.1 and 1.2 read alike, written as cdk8s writes them.
 *
 * Each document begins with `---`, unlike those of cdk8s, whose CLI joins files without a separator.
 * @see https://github.com/cdk8s-team/cdk8s-cli/issues/943
 */
export function manifestText(objects: readonly AnyObject[]): string {
  return objects.map((object) => `---\n${yamlText(object)}`).join('');
}

/**
 * Text that cdk8s writes without quotes though some parser takes it for something else: a merge key, or a number
 * with a prefix that YAML 1.1 doesn't know, while YAML 1.2 and the `strconv.ParseInt` behind `kubectl` do.
 */
const NEEDS_QUOTES = /^(?:<<|[-+]?0[xob][0-9a-f_]+)$/i;
const MAY_NEED_QUOTES = /<<|\b0[xob]/i;

/** One object as YAML, without `---`. */
export function yamlText(object: AnyObject): string {
  const text = Yaml.stringify(object);
  return MAY_NEED_QUOTES.test(text) ? withMoreQuotes(object) : text;
}

function withMoreQuotes(object: AnyObject): string {
  const document = new Document(object, {
    version: '1.1',
    keepUndefined: true,
    // With its tag, a merge key is written without quotes whatever else is said.
    customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !tag.tag.endsWith(':merge')),
  });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && NEEDS_QUOTES.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}
