import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import type { FieldsV1, ManagedFieldsEntry } from '../../src/engine/managed-fields.js';
import {
  isHeld,
  isLegacy,
  sharedWith,
  withApiVersion,
  withItemsTaken,
  withoutOwners,
} from '../../src/engine/managed-fields.js';
import { anObject, applied, CONFIG_MAP, MANAGER } from './support/builders.js';

const HASHED = { 'reconstruct.kosmos.io/applied-hash': 'h' };

const updated = (manager: string, fieldsV1: object, subresource?: string): ManagedFieldsEntry => ({
  ...(applied(manager, fieldsV1, 'v1', subresource) as ManagedFieldsEntry),
  operation: 'Update',
});
const owned = (fieldsV1: object): ManagedFieldsEntry => applied(MANAGER, fieldsV1);

function live(
  entries: readonly ManagedFieldsEntry[],
  annotations: Record<string, string> = HASHED,
): AnyObject {
  return anObject(CONFIG_MAP, 'web', { annotations, managedFields: entries });
}

const data = (...names: string[]): FieldsV1 => ({
  'f:data': Object.fromEntries(names.map((name) => [`f:${name}`, {}])),
});

describe('legacy managers', () => {
  it.each([
    'kubectl',
    'kubectl-client-side-apply',
    'kubectl-create',
    'kubectl-edit',
    'helm',
    'Helm',
    'before-first-apply',
  ])('include %s', (manager) => {
    expect(isLegacy(updated(manager, {}))).toBe(true);
  });

  it.each(['kube-controller-manager', 'kubectlx', 'helm-controller', 'argocd-controller', MANAGER, ''])(
    'do not include "%s"',
    (manager) => {
      expect(isLegacy(updated(manager, {}))).toBe(false);
    },
  );

  it('have no say in what is written through a subresource', () => {
    expect(isLegacy(updated('kubectl', {}, 'scale'))).toBe(false);
  });
});

describe('sharedWith', () => {
  it('names who has applied what a legacy manager owns too', () => {
    const entries = [updated('kubectl-create', data('a', 'b')), owned(data('a'))];
    expect(sharedWith(isLegacy, live(entries))).toEqual([MANAGER]);
  });

  it.each([
    ['a legacy manager owns other fields', [updated('kubectl-edit', data('b')), owned(data('a'))]],
    ['others own the same fields', [updated('some-controller', data('a')), owned(data('a'))]],
    ['nobody else owns anything', [owned(data('a'))]],
  ])('names nobody where %s', (_, entries) => {
    expect(sharedWith(isLegacy, live(entries))).toBeUndefined();
  });

  it('does not look at what does not carry our hash', () => {
    const entries = [updated('kubectl-create', data('a')), owned(data('a'))];
    expect(sharedWith(isLegacy, live(entries, {}))).toBeUndefined();
  });
});

describe('withoutOwners', () => {
  it('takes from legacy managers what we have applied, and nothing else from nobody else', () => {
    const other = updated('some-controller', data('a'));
    const entries = [updated('helm', data('a', 'b')), other, owned(data('a'))];
    expect(withoutOwners(isLegacy, live(entries), MANAGER)).toEqual([
      updated('helm', data('b')),
      other,
      owned(data('a')),
    ]);
  });

  it('drops the entry of a manager that is left with nothing', () => {
    const entries = [updated('kubectl-create', data('a')), owned(data('a'))];
    expect(withoutOwners(isLegacy, live(entries), MANAGER)).toEqual([owned(data('a'))]);
  });

  it('leaves nothing shared', () => {
    const entries = [updated('kubectl-create', data('a', 'b')), owned(data('a'))];
    expect(sharedWith(isLegacy, live(withoutOwners(isLegacy, live(entries), MANAGER)!))).toBeUndefined();
  });
});

describe('what an autoscaler leaves', () => {
  const replicas = { 'f:spec': { 'f:replicas': {} } };
  const holder = applied('widget-replicas', replicas);
  const scaled = updated('kube-controller-manager', replicas, 'scale');
  const status = updated('kube-controller-manager', { 'f:status': {} }, 'status');

  it('goes once the replicas are applied again', () => {
    const object = live([holder, scaled, status, owned(replicas)]);
    expect(sharedWith(isHeld, object)).toEqual([MANAGER]);
    expect(withoutOwners(isHeld, object, MANAGER)).toEqual([status, owned(replicas)]);
  });

  it('stays while they are not', () => {
    const object = live([holder, scaled, owned(data('a'))]);
    expect(sharedWith(isHeld, object)).toBeUndefined();
    expect(withoutOwners(isHeld, object, MANAGER)).toBeUndefined();
  });
});

describe('withItemsTaken', () => {
  const HTTP = 'k:{"port":80,"protocol":"TCP"}';
  const path = ['f:spec', 'f:ports', HTTP];
  const ports = (...segments: string[]): FieldsV1 => ({
    'f:spec': {
      'f:ports': {
        '.': {},
        ...Object.fromEntries(segments.map((item) => [item, { '.': {}, 'f:port': {} }])),
      },
    },
  });
  const taken = { 'f:spec': { 'f:ports': { [HTTP]: { '.': {} } } } };

  it('takes items from whoever wrote them, and leaves the others', () => {
    const other = 'k:{"port":81,"protocol":"TCP"}';
    const entries = [updated('kubectl-client-side-apply', ports(HTTP, other)), owned(data('a'))];
    expect(withItemsTaken(live(entries), MANAGER, [path])).toEqual([
      updated('kubectl-client-side-apply', ports(other)),
      owned({ ...data('a'), ...taken }),
    ]);
  });

  it('makes an entry where we have none yet', () => {
    const entries = [updated('kubectl-create', ports(HTTP))];
    expect(withItemsTaken(live(entries), MANAGER, [path])).toEqual([
      { manager: MANAGER, operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: taken },
    ]);
  });

  it('takes nothing from another controller that applies', () => {
    const another = applied('another-controller', ports(HTTP)) as ManagedFieldsEntry;
    expect(withItemsTaken(live([another, owned({})]), MANAGER, [path])[0]).toEqual(another);
  });
});

it('withApiVersion rewrites our entry alone', () => {
  const others = [updated('kubectl-edit', data('a')), applied('another', data('b'), 'v1beta1')];
  const own = { ...owned(data('a')), apiVersion: 'v1beta1' };
  expect(withApiVersion(live([...others, own] as ManagedFieldsEntry[]), MANAGER, 'v1')).toEqual([
    ...others,
    owned(data('a')),
  ]);
});
