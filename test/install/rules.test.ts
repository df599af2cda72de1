import { describe, expect, it, vi } from 'vitest';
import { watchesFor } from '../../src/author/owned-children.js';
import type { Watch } from '../../src/contract/controller.js';
import type { Kind } from '../../src/contract/kind.js';
import { resourceType } from '../../src/contract/resource.js';
import { rulesFor } from '../../src/install/rules.js';

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

describe('rulesFor', () => {
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
