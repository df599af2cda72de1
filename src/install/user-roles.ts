import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { storedVersion } from '../contract/crd.js';
import type { Kind } from '../contract/kind.js';
import { accessName } from './names.js';
import type { InstallProps } from './props.js';
import type { PolicyRule } from './rules.js';

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];

/** Kubernetes' own user-facing roles; each has the rights of those before it. */
const USER_ROLES = ['view', 'edit', 'admin'] as const;
type UserRole = (typeof USER_ROLES)[number];

/**
 * What users may do with custom resources. In the whole cluster it is added to the roles `view`, `edit` and `admin`,
 * so that whoever has those has it; in single namespaces there are Roles of that use, which have to be bound.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles
 */
export class UserRoles extends Construct {
  constructor(scope: Construct, id: string, { namespace, kinds, watchNamespaces }: InstallProps) {
    super(scope, id);
    for (const role of USER_ROLES) {
      const common = { apiVersion: 'rbac.authorization.k8s.io/v1' };
      const name = accessName(namespace, role);
      const rules = userRules(kinds, role, watchNamespaces !== undefined);
      if (rules.length === 0) continue;
      if (!watchNamespaces) {
        const labels = { [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' };
        new ApiObject(this, role, { ...common, kind: 'ClusterRole', metadata: { name, labels }, rules });
      }
      for (const watched of watchNamespaces ?? [])
        new ApiObject(this, `${role}-in-${watched}`, {
          ...{ ...common, kind: 'Role', metadata: { name, namespace: watched }, rules },
        });
    }
  }
}

/** @param whole with the rights of the roles before it: nothing adds them to a Role */
function userRules(kinds: readonly Kind[], role: UserRole, whole: boolean): PolicyRule[] {
  const level = USER_ROLES.indexOf(role);
  const counts = (of: UserRole): boolean =>
    whole ? USER_ROLES.indexOf(of) <= level : USER_ROLES.indexOf(of) === level;
  return kinds.flatMap((kind) => [
    ...(counts('view') ? readRules(kind) : []),
    ...(counts(kind.writers ?? 'edit') ? writeRules(kind) : []),
  ]);
}

function readRules(kind: Kind): PolicyRule[] {
  return [rule(kind, [''], READ), rule(kind, ['/status', ...scaleOf(kind)], ['get'])];
}

function writeRules(kind: Kind): PolicyRule[] {
  const scale = scaleOf(kind);
  return [rule(kind, [''], WRITE), ...(scale.length > 0 ? [rule(kind, scale, ['patch', 'update'])] : [])];
}

function rule({ type, crd }: Kind, subresources: readonly string[], verbs: readonly string[]): PolicyRule {
  const resources = subresources.map((subresource) => type.plural + subresource);
  return { apiGroups: [crd.spec.group], resources, verbs };
}

function scaleOf({ crd }: Kind): string[] {
  return storedVersion(crd).subresources?.scale ? ['/scale'] : [];
}
