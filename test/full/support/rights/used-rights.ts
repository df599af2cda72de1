import type { AuditEntry } from '../../../../sandbox/audit.js';
import type { PolicyRule } from '../../../../src/install/rules.js';

/** One verb on one resource: the least that a rule can grant. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  /** With its subresource, as in `appservices/status`. */
  readonly resource: string;
  /** @default - all that there are rules for */
  readonly namespace?: string;
  /** @default - every name */
  readonly name?: string;
}

/** What rules come to, one by one. */
export function rightsIn(rules: readonly PolicyRule[]): Right[] {
  return rules.flatMap(
    ({ apiGroups, resources, verbs, resourceNames = [undefined], namespaces = [undefined] }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.flatMap((verb) =>
            resourceNames.flatMap((name) =>
              namespaces.map((namespace) => ({
                ...{ verb, group, resource },
                ...(namespace !== undefined && { namespace }),
                ...(name !== undefined && { name }),
              })),
            ),
          ),
        ),
      ),
  );
}

/** As in `patch services ingress/proxy`. */
export function describeRight({ verb, group, resource, namespace, name }: Right): string {
  const place = namespace === undefined ? '' : ` ${namespace}/${name ?? '*'}`;
  return `${verb} ${resource}${group && `.${group}`}${place}`;
}

/** Whether the API server has let the request pass for this right. */
export function isUsedBy(right: Right, { verb, code = 0, objectRef = {} }: AuditEntry): boolean {
  const { apiGroup = '', resource = '', subresource, namespace, name } = objectRef;
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  // An apply that makes an object is asked for both.
  const makes = verb === 'patch' && code === 201;
  return (
    code !== 403 &&
    (verb === right.verb || (makes && right.verb === 'create')) &&
    apiGroup === right.group &&
    what === right.resource &&
    (right.namespace === undefined || namespace === right.namespace) &&
    (right.name === undefined || name === right.name)
  );
}

/** A rule for each. */
export function rulesOf(rights: readonly Right[]): PolicyRule[] {
  return rights.map(({ verb, group, resource, namespace, name }) => ({
    ...{ apiGroups: [group], resources: [resource], verbs: [verb] },
    ...(name !== undefined && { resourceNames: [name] }),
    ...(namespace !== undefined && { namespaces: [namespace] }),
  }));
}
