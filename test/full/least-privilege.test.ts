import { describe, expect, it } from 'vitest';
import { defineKind } from '../../src/author/define-kind.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { installManifests } from '../../src/install/manifests.js';
import type { InstallProps } from '../../src/install/props.js';
import type { PolicyRule } from '../../src/install/rules.js';
import { appService, appServiceOfExample } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';

/** A kind of one's own that makes Secrets. */
const vault = defineKind({
  crd: {
    ...appService.crd,
    metadata: { name: 'vaults.example.com' },
    spec: {
      ...appService.crd.spec,
      group: 'example.com',
      names: { kind: 'Vault', plural: 'vaults', singular: 'vault' },
    },
  },
  children: [{ apiVersion: 'v1', kind: 'Secret' }],
  construct: appService.construct,
});

const ownKinds: readonly Kind[] = [appService, appServiceOfExample, jobWatcher, streamIngress];
const nginx = { name: 'nginx', ingressNamespace: 'edge', ingressController: 'DaemonSet/nginx' };
const gateway = { name: 'gateway', kind: 'Gateway', gateway: 'gateways/edge' };
const policies = [
  undefined,
  { targets: [nginx] },
  { targets: [gateway], routeVersion: 'v1alpha2' },
  { targets: [nginx, gateway], crossNamespace: 'Annotation' },
];
const modes: readonly Partial<InstallProps>[] = [{}, { watchNamespaces: ['shop', 'billing'] }];

/** Every set of the kinds, in every mode, with every policy that changes the rights. */
const variants = subsets(ownKinds).flatMap((kinds) =>
  modes.flatMap((mode) => policies.map((policy) => ({ kinds, mode, policy }))),
);

function subsets<T>(items: readonly T[]): T[][] {
  const [first, ...rest] = items;
  if (first === undefined) return [];
  return [[first], ...subsets(rest).flatMap((set) => [set, [first, ...set]])];
}

function manifests(kinds: readonly Kind[], mode: Partial<InstallProps>, streamingress?: object): AnyObject[] {
  return installManifests({
    ...{ namespace: 'ops', image: 'example.com/reconstruct:1', kinds, replicas: 2, ...mode },
    ...(streamingress && { policy: { text: '', parsed: { streamingress } } }),
  });
}

/** The rules of what the operator is bound to. */
function operatorsRules(objects: readonly AnyObject[]): PolicyRule[] {
  return objects
    .filter(({ kind, metadata }) => kind.endsWith('Role') && metadata.name === 'reconstruct:ops')
    .flatMap(({ rules }) => rules as readonly PolicyRule[]);
}

const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const FORBIDDEN = [
  'secrets',
  'serviceaccounts',
  'roles',
  'clusterroles',
  'rolebindings',
  'clusterrolebindings',
];
const SUBRESOURCES = ['status', 'finalizers'];

function requireLeast(rules: readonly PolicyRule[], allowed: readonly string[] = []): void {
  expect(JSON.stringify(rules)).not.toContain('*');
  for (const { resources, verbs, apiGroups } of rules) {
    for (const verb of verbs) expect(VERBS).toContain(verb);
    expect(apiGroups).toHaveLength(1);
    for (const resource of resources) {
      const [name, subresource] = resource.split('/') as [string, string?];
      if (!allowed.includes(name)) expect(FORBIDDEN).not.toContain(name);
      if (subresource !== undefined) expect(SUBRESOURCES).toContain(subresource);
      // Pods are looked at, and never touched.
      if (name === 'pods') expect(verbs).toEqual(['list', 'watch']);
    }
  }
}

describe('whatever is installed', () => {
  it('has no wildcard, no Secrets, and nothing that leads to further rights', () => {
    expect(variants).toHaveLength(15 * 2 * 4);
    for (const { kinds, mode, policy } of variants) {
      const objects = manifests(kinds, mode, kinds.includes(streamIngress) ? policy : undefined);
      const all = objects
        .filter(({ kind }) => kind.endsWith('Role'))
        .flatMap(({ rules }) => rules as PolicyRule[]);
      expect(JSON.stringify(all)).not.toContain('*');
      const rules = operatorsRules(objects);
      expect(rules.length).toBeGreaterThan(3);
      requireLeast(rules);
    }
  });

  it('is bound to the ServiceAccount alone, and in single namespaces by Roles alone', () => {
    for (const { kinds, mode, policy } of variants) {
      const objects = manifests(kinds, mode, kinds.includes(streamIngress) ? policy : undefined);
      const account = { kind: 'ServiceAccount', name: 'reconstruct', namespace: 'ops' };
      for (const binding of objects.filter(({ kind }) => kind.endsWith('Binding'))) {
        expect(binding.subjects).toEqual([account]);
        expect(binding.roleRef).toMatchObject({ name: 'reconstruct:ops' });
      }
      const clusterWide = objects.filter(({ kind }) => kind.startsWith('Cluster'));
      expect(clusterWide.length > 0).toBe(mode.watchNamespaces === undefined);
    }
  });

  it('may write Secrets for a kind of one’s own that declares them as children, and for no other', () => {
    for (const mode of modes) {
      const rules = operatorsRules(manifests([...ownKinds, vault], mode));
      requireLeast(rules, ['secrets']);
      const secrets = rules.filter(({ resources }) => resources.includes('secrets'));
      for (const { verbs } of secrets)
        expect(verbs).toEqual(['get', 'list', 'watch', 'create', 'patch', 'delete']);
      expect(secrets).toHaveLength(mode.watchNamespaces?.length ?? 1);
    }
  });
});
