import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { ChildTypeProps } from '../../src/author/listed-types.js';
import { loadKinds } from '../../src/cli/config.js';
import { watchesFor } from '../../src/author/owned-children.js';
import type { Watch } from '../../src/contract/controller.js';
import type { Kind, OwnedKind } from '../../src/contract/kind.js';
import { resourceType } from '../../src/contract/resource.js';
import { foreignNamespaces } from '../../src/install/apply.js';
import { accessObjects, rulesFor } from '../../src/install/rules.js';

const type = (apiVersion: string, kind: string) => resourceType({ apiVersion, kind });

function kind(name: string, children: string[], formerChildren: string[] = [], related: string[] = []): Kind {
  const readOnly = { selector: 'app', keep: () => ({}), nameOf: () => undefined };
  return watching(
    watchesFor({
      ...{ name, type: type('demo.io/v1', name), construct: undefined as never },
      children: children.map((child) => type('apps/v1', child)),
      formerChildren: formerChildren.map((child) => type('apps/v1', child)),
      related: related.map((other) => ({ ...type('apps/v1', other), ...readOnly })),
    }),
  );
}

/** A kind whose one controller has these watches. */
function watching(watches: readonly Watch[]): Kind {
  return { controllers: () => [{ watches }] } as unknown as Kind;
}

const verbs = (kinds: Kind[], resource: string): string[] =>
  rulesFor(kinds)
    .filter(({ resources }) => resources.includes(resource))
    .flatMap((rule) => [...rule.verbs])
    .sort();

describe('foreignNamespaces', () => {
  const tenant = async (children: readonly ChildTypeProps[]): Promise<string[]> => {
    const [base] = await loadKinds({
      ...{ config: join(repoFolder(), 'test/support/kinds/keeper-delete.config.mjs'), builtIn: [] },
    });
    const { crd, construct } = base as OwnedKind;
    return foreignNamespaces(defineKind({ crd: crd, construct: construct as never, children }), {
      namespace: 'ops',
      watchNamespaces: ['shop'],
    });
  };

  it('are those that a kind names, and not all', async () => {
    const configMaps = { apiVersion: 'v1', kind: 'ConfigMap' };
    const roles = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', namespaced: false };
    expect(await tenant([configMaps])).toEqual([]);
    expect(await tenant([{ ...configMaps, namespaces: ['catalog', 'ops'] }])).toEqual(['catalog']);
    expect(await tenant([{ ...configMaps, namespaces: '*' }])).toEqual([]);
    expect(await tenant([configMaps, roles])).toEqual([]);
  });
});

describe('rulesFor', () => {
  it('grants what is everywhere by a ClusterRole, also where some namespaces are watched', () => {
    const rules = rulesFor(
      [watching([{ type: type('v1', 'ConfigMap'), namespaces: '*', mapsTo: () => [] }])],
      {
        namespaces: ['shop'],
      },
    );
    const access = accessObjects(rules, { namespace: 'ops', watchNamespaces: ['shop'] });
    const role = access.find((object) => object.kind === 'ClusterRole');
    expect(role?.rules).toEqual([{ apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] }]);
  });

  it('reads custom resources and writes nothing of them but their status', () => {
    const kinds = [kind('Widget', ['Deployment'])];
    expect(verbs(kinds, 'widgets')).toEqual(['get', 'list', 'watch']);
    expect(verbs(kinds, 'widgets/status')).toEqual(['patch']);
    expect(verbs(kinds, 'widgets/finalizers')).toEqual(['update']);
  });

  it('writes children, and only finds and deletes former ones', () => {
    const kinds = [kind('Widget', ['Deployment'], ['StatefulSet'])];
    expect(verbs(kinds, 'deployments')).toEqual(['create', 'delete', 'get', 'list', 'patch', 'watch']);
    expect(verbs(kinds, 'statefulsets')).toEqual(['delete', 'get', 'list', 'watch']);
  });

  it('grants what a watch declares, where it declares it, and asks for no name that there is not yet', () => {
    const config = { type: type('v1', 'ConfigMap'), mapsTo: () => [] };
    const shared = watching([{ ...config, namespaces: ['ingress'], writes: ['create', 'patch'] }]);
    const one = watching([{ ...config, name: 'tcp', namespaces: ['ingress'], writes: ['create', 'patch'] }]);
    const rule = { apiGroups: [''], resources: ['configmaps'], namespaces: ['ingress'] };
    expect(rulesFor([shared]).slice(0, -1)).toEqual([
      { ...rule, verbs: ['get', 'list', 'watch', 'create', 'patch'] },
    ]);
    expect(rulesFor([one]).slice(0, -1)).toEqual([
      { ...rule, verbs: ['get', 'list', 'watch', 'patch'], resourceNames: ['tcp'] },
      { ...rule, verbs: ['create'] },
    ]);
    // What is granted everywhere isn't mixed up with what is granted in one place.
    expect(rulesFor([shared, watching([config])])).toHaveLength(3);
  });

  it('has one rule for the names with which the same may be done, and one for each place', () => {
    const config = { type: type('v1', 'ConfigMap'), mapsTo: () => [], namespaces: ['ingress'] };
    const read = ['get', 'list', 'watch'];
    const watches: Watch[] = [
      { ...config, name: 'tcp', writes: ['patch'] },
      { ...config, name: 'udp', writes: ['patch'] },
      { ...config, name: 'leader' },
      { ...config, name: 'tcp', namespaces: ['other'], writes: ['patch'] },
    ];
    const rule = { apiGroups: [''], resources: ['configmaps'], namespaces: ['ingress'] };
    expect(rulesFor([watching(watches)]).slice(0, -1)).toEqual([
      { ...rule, verbs: [...read, 'patch'], resourceNames: ['tcp', 'udp'] },
      { ...rule, verbs: ['list', 'watch'], resourceNames: ['leader'] },
      { ...rule, verbs: [...read, 'patch'], resourceNames: ['tcp'], namespaces: ['other'] },
    ]);
  });

  it('makes the controllers with the flags and the policy that are given', () => {
    const asked = vi.fn(() => []);
    rulesFor([{ controllers: asked } as unknown as Kind], {
      flags: { '--a': 'b' },
      operatorNamespace: 'ops',
    });
    expect(asked).toHaveBeenCalledWith(
      expect.objectContaining({ flags: { '--a': 'b' }, operatorNamespace: 'ops' }),
    );
  });
});
