import { describe, expect, it } from 'vitest';
import {
  describePath,
  difference,
  setOf,
  touches,
  union,
  without,
  withoutSubtree,
} from '../../src/engine/field-set.js';
import type { FieldsV1 } from '../../src/engine/field-set.js';

const WEB = 'k:{"name":"web"}';
const ITEM: FieldsV1 = { '.': {}, 'f:name': {}, 'f:image': {} };
const SPEC: FieldsV1 = { 'f:spec': { 'f:replicas': {}, 'f:containers': { [WEB]: ITEM } } };

describe('field sets', () => {
  it('differ by the paths that are missing, each as high up as it is missing', () => {
    expect(difference(SPEC, SPEC)).toEqual([]);
    expect(difference(SPEC, {})).toEqual([['f:spec']]);
    expect(difference(SPEC, { 'f:spec': { 'f:replicas': {} } })).toEqual([['f:spec', 'f:containers', WEB]]);
    expect(difference({ 'f:data': { 'f:level': {} } }, {})).toEqual([['f:data', 'f:level']]);
    const without = { 'f:spec': { 'f:containers': { [WEB]: { '.': {}, 'f:name': {} } } } };
    expect(difference(SPEC, without)).toEqual([
      ['f:spec', 'f:replicas'],
      ['f:spec', 'f:containers', WEB, 'f:image'],
    ]);
    expect(difference(without, SPEC)).toEqual([]);
  });

  it('name paths as kubectl does', () => {
    const describe = (...path: string[]): string => describePath(path);
    expect(describe('f:spec', 'f:containers', WEB, 'f:image')).toBe('.spec.containers[name="web"].image');
    expect(describe('f:spec', 'f:ports', 'k:{"port":80,"protocol":"TCP"}')).toBe(
      '.spec.ports[port=80,protocol="TCP"]',
    );
    expect(describe('f:metadata', 'f:labels', 'f:example.com/team')).toBe(
      '.metadata.labels["example.com/team"]',
    );
    expect(describe('f:metadata', 'f:finalizers', 'v:"a/b"')).toBe('.metadata.finalizers["a/b"]');
  });

  it.each([
    ['the field itself', ['f:spec', 'f:replicas'], true],
    ['something below the path', ['f:spec'], true],
    ['a list as a whole, with the path in it', ['f:spec', 'f:replicas', 'f:deep'], true],
    ['a neighbour', ['f:spec', 'f:paused'], false],
    ['nothing near', ['f:metadata'], false],
  ])('touch a path by owning %s', (_, path, expected) => {
    expect(touches(SPEC, path)).toBe(expected);
  });

  it('that own nothing touch nothing', () => {
    expect(touches({}, ['f:spec'])).toBe(false);
  });

  it('lose what another set has, and keep the rest', () => {
    const labels = (names: FieldsV1): FieldsV1 => ({ 'f:metadata': { 'f:labels': { '.': {}, ...names } } });
    expect(
      without(labels({ 'f:a': {}, 'f:b': {} }), { 'f:metadata': { 'f:labels': { 'f:a': {} } } }),
    ).toEqual(labels({ 'f:b': {} }));
    expect(without(labels({ 'f:a': {} }), { 'f:metadata': { 'f:labels': { 'f:a': {} } } })).toEqual({});
  });

  it('are returned as they are when they share nothing', () => {
    const mine: FieldsV1 = { 'f:spec': { 'f:containers': { 'k:{"name":"sidecar"}': ITEM } } };
    expect(without(mine, SPEC)).toBe(mine);
    const env: FieldsV1 = {
      'f:spec': { 'f:containers': { [WEB]: { 'f:env': { 'k:{"name":"A"}': ITEM } } } },
    };
    expect(without(env, SPEC)).toBe(env);
  });

  it('lose an item that both own, with the fields below it', () => {
    const created = { 'f:spec': { 'f:containers': { [WEB]: { ...ITEM, 'f:terminationMessagePath': {} } } } };
    expect(without(created, SPEC)).toEqual({});
  });

  it('keep items of lists below an item that both own, once and for all', () => {
    const theirs: FieldsV1 = { 'k:{"name":"THEIRS"}': { '.': {}, 'f:value': {} } };
    const env = (items: FieldsV1): FieldsV1 => ({ 'f:env': { '.': {}, ...items } });
    const both: FieldsV1 = { 'k:{"name":"OURS"}': { '.': {}, 'f:value': {} } };
    const created: FieldsV1 = { [WEB]: { ...ITEM, 'f:resources': {}, ...env({ ...both, ...theirs }) } };
    const ours: FieldsV1 = { [WEB]: { ...ITEM, ...env(both) } };
    const left = without(created, ours);
    expect(left).toEqual({ [WEB]: { 'f:env': theirs } });
    expect(without(left, ours)).toBe(left);
  });

  it('lose a set value and an atomic list that both own', () => {
    const both: FieldsV1 = { 'f:metadata': { 'f:finalizers': { 'v:"a"': {} } }, 'f:args': {} };
    expect(without({ ...both, 'f:x': {} }, both)).toEqual({ 'f:x': {} });
  });

  it('lose a subtree, and what is empty then', () => {
    const path = ['f:spec', 'f:containers', WEB];
    expect(withoutSubtree(SPEC, path)).toEqual({ 'f:spec': { 'f:replicas': {} } });
    expect(withoutSubtree(SPEC, ['f:spec', 'f:other'])).toBe(SPEC);
    expect(withoutSubtree(setOf(path, ITEM), path)).toEqual({});
  });

  it('are united', () => {
    expect(union(setOf(['f:a', 'f:b'], {}), setOf(['f:a', 'f:c'], {}))).toEqual({
      'f:a': { 'f:b': {}, 'f:c': {} },
    });
  });
});
