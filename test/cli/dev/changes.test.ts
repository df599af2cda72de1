import { describe, expect, test } from 'vitest';
import { changesBetween, objectsById } from '../../../src/cli/dev/changes.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { FieldsV1 } from '../../../src/engine/field-set.js';

let version = 0;

function meta(fieldsV1: FieldsV1, rest: object = {}): AnyObject['metadata'] {
  return {
    ...{ name: 'web', namespace: 'shop', uid: 'uid-child', resourceVersion: `${++version}` },
    ownerReferences: [
      { apiVersion: 'example.com/v1', kind: 'Note', name: 'web', uid: 'uid-note', controller: true },
    ],
    managedFields: [{ manager: 'note-controller', operation: 'Apply', fieldsV1 }],
    ...rest,
  } as AnyObject['metadata'];
}

function configMap(data: Record<string, string>, fields: FieldsV1, rest: object = {}): AnyObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta(fields, rest), data };
}

function changes(before: readonly AnyObject[], after: readonly AnyObject[]): string[] {
  return changesBetween(objectsById(before), objectsById(after)).map(({ text }) => text);
}

const text: FieldsV1 = { 'f:data': { 'f:text': {} } };

describe('what is made of custom resources', () => {
  test('a field that is rendered otherwise is told, from what to what', () => {
    expect(changes([configMap({ text: 'Hello' }, text)], [configMap({ text: 'Hi' }, text)])).toEqual([
      'ConfigMap shop/web: .data.text "Hello" -> "Hi"',
    ]);
  });

  test('a field that comes, and one that is dropped', () => {
    const other: FieldsV1 = { 'f:data': { 'f:title': {} } };
    expect(changes([configMap({ text: 'a' }, text)], [configMap({ title: 'b' }, other)])).toEqual([
      'ConfigMap shop/web: .data.title is now "b"',
      'ConfigMap shop/web: .data.text was "a", and is gone',
    ]);
  });

  test('a field of ours that somebody else takes is told, and what others put beside it is not', () => {
    const before = configMap({ text: 'ours' }, text);
    const after = configMap({ text: 'theirs', note: 'beside' }, {});
    expect(changes([before], [after])).toEqual(['ConfigMap shop/web: .data.text "ours" -> "theirs"']);
    expect(changes([before], [configMap({ text: 'ours', note: 'beside' }, text)])).toEqual([]);
  });

  test('items of lists are told apart by their keys, and defaults of the cluster are left out', () => {
    const fields: FieldsV1 = {
      'f:spec': { 'f:containers': { 'k:{"name":"web"}': { '.': {}, 'f:name': {}, 'f:image': {} } } },
    };
    const pod = (image: string): AnyObject => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: meta(fields) },
      spec: { dnsPolicy: image, containers: [{ name: 'sidecar' }, { name: 'web', image, tty: image }] },
    });
    expect(changes([pod('a:1')], [pod('a:2')])).toEqual([
      'Pod shop/web: .spec.containers[name="web"].image "a:1" -> "a:2"',
    ]);
  });

  test('a set, and a list that is owned as a whole', () => {
    const fields: FieldsV1 = { 'f:spec': { 'f:names': { 'v:"a"': {}, 'v:"b"': {} }, 'f:args': {} } };
    const thing = (args: string[], names: string[]): AnyObject => ({
      ...{ apiVersion: 'v1', kind: 'Thing', metadata: meta(fields), spec: { args, names } },
    });
    expect(changes([thing(['x'], ['a', 'b', 'c'])], [thing(['x', 'y'], ['a', 'b'])])).toEqual([
      'Thing shop/web: .spec.args ["x"] -> ["x","y"]',
    ]);
  });

  test('objects that are made, made anew and gone', () => {
    const made = configMap({ text: 'a' }, text);
    expect(changes([], [made])).toEqual(['ConfigMap shop/web: made']);
    expect(changes([made], [configMap({ text: 'a' }, text, { uid: 'uid-next' })])).toEqual([
      'ConfigMap shop/web: made anew',
    ]);
    expect(changes([made], [])).toEqual(['ConfigMap shop/web: gone']);
  });

  test('of a Secret no value is shown', () => {
    const secret = (value: string): AnyObject => ({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: meta({ 'f:data': { 'f:key': {} } }) },
      data: { key: value },
    });
    expect(changes([secret('b25l')], [secret('dHdv')])).toEqual([
      'Secret shop/web: .data.key "(redacted, before)" -> "(redacted, after)"',
    ]);
  });

  test('what the API server writes by itself is no change', () => {
    const before = configMap({ text: 'a' }, text, {
      annotations: { 'reconstruct.kosmos.io/applied-hash': '1' },
    });
    const fields: FieldsV1 = {
      ...text,
      'f:metadata': { 'f:annotations': { 'f:reconstruct.kosmos.io/applied-hash': {} } },
    };
    const after = configMap({ text: 'a' }, fields, {
      annotations: { 'reconstruct.kosmos.io/applied-hash': '2' },
    });
    expect(changes([before], [after])).toEqual([]);
  });
});

test('of a custom resource its spec counts, whoever has edited it', () => {
  const note = (replicas: number, status: string): AnyObject => ({
    ...{ apiVersion: 'example.com/v1', kind: 'Note', status: { status } },
    metadata: { name: 'web', namespace: 'shop', uid: 'uid-note', resourceVersion: `${++version}` },
    spec: { replicas },
  });
  expect(changes([note(1, 'a')], [note(2, 'b')])).toEqual(['Note shop/web: .spec.replicas 1 -> 2']);
});
