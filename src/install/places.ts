import type { Kind } from '../contract/kind.js';
import { resourceType } from '../contract/resource.js';
import { operatorRules } from './access.js';
import type { Cluster } from './cluster.js';
import { accessName, INSTALLATION_LABEL } from './names.js';
import { PART_SELECTOR } from './ours.js';
import type { InstallProps } from './props.js';
import type { PolicyRule } from './rules.js';

const roleType = resourceType({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' });

/** Stands for all objects of a type. */
const ALL = '*';

/**
 * The objects that a kind changes in namespaces of its own choice, whichever are watched: `services edge/proxy`.
 * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
 */
export function placesOf(kind: Kind, props: InstallProps): string[] {
  return operatorRules([kind], props).flatMap((rule) =>
    (rule.namespaces ?? []).flatMap((namespace) => placesIn(namespace, rule)),
  );
}

/**
 * The objects that an installation may change by the Roles that it has. A right on all objects of a type isn't one on
 * each: it may be there for other kinds.
 */
export async function placesOfInstallation(namespace: string, cluster: Cluster): Promise<Set<string>> {
  const selector = `${PART_SELECTOR},${INSTALLATION_LABEL}=${namespace}`;
  const roles = await cluster.list(roleType, { selector });
  const places = roles
    .filter(({ metadata }) => metadata.name === accessName(namespace))
    .flatMap(({ metadata, rules }) =>
      ((rules ?? []) as readonly PolicyRule[]).flatMap((rule) => placesIn(metadata.namespace ?? '', rule)),
    );
  return new Set(places);
}

function placesIn(
  namespace: string,
  { apiGroups, resources, verbs, resourceNames = [ALL] }: PolicyRule,
): string[] {
  if (!verbs.includes('patch') && !verbs.includes('delete')) return [];
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      resourceNames.map((name) => `${resource}${group && `.${group}`} ${namespace}/${name}`),
    ),
  );
}
