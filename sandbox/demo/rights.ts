import { appService, rulesFor } from 'reconstruct';
import { writeYaml } from '#contract/yaml.js';
import { table } from './text.js';

const name = 'reconstruct-demo';

/** A ClusterRole with what a controller of AppServices needs and no more, bound to the user. */
export function rightsYaml(user: string): string {
  const metadata = { name };
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const role = { apiVersion, kind: 'ClusterRole', metadata, rules: rulesFor([appService]) };
  const binding = {
    ...{ apiVersion, kind: 'ClusterRoleBinding', metadata },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  };
  return `${writeYaml(role)}---\n${writeYaml(binding)}`;
}

/** The same rights for people. */
export function rightsTable(): string {
  const rows = rulesFor([appService]).map(({ apiGroups, resources, verbs }) => {
    const group = apiGroups.join() === '' ? '' : `.${apiGroups.join()}`;
    // The group belongs to the resource, also before a subresource: appservices.kosmos.io/status.
    const names = resources.map((resource) => resource.replace(/^[^/]+/, (name) => `${name}${group}`));
    return [names.join(), verbs.join(', ')];
  });
  return table([['RESOURCE', 'MAY'], ...rows]);
}
