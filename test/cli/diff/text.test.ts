import { describe, expect, test } from 'vitest';
import { refusals } from '../../../src/cli/diff/compare.js';
import { documentOf, textOf } from '../../../src/cli/diff/text.js';
import type { Paint } from '../../../src/cli/output.js';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { ObjectPreview, PreviewAction } from '../../../src/engine/preview/preview.js';

const plain: Paint = (_, text) => text;

const ref = (kind: string, name = 'web') => ({ apiVersion: 'v1', kind, namespace: 'shop', name });
const object = (kind: string, rest: object): AnyObject => ({
  ...{ apiVersion: 'v1', kind, metadata: { name: 'web', namespace: 'shop', resourceVersion: '7' } },
  ...rest,
});
const previewOf = (
  kind: string,
  action: PreviewAction,
  rest: Partial<ObjectPreview> = {},
): ObjectPreview => ({
  ...{ ref: ref(kind), action, takes: [], leaves: [] },
  ...rest,
});

const changed = previewOf('ConfigMap', 'changed', {
  before: object('ConfigMap', { data: { a: '1', b: '2\n3\n' } }),
  after: object('ConfigMap', { data: { a: '2' } }),
  takes: [{ field: '.data.a', manager: 'kubectl-edit' }],
});
const refused = previewOf('Service', 'failed', {
  error: new OperatorError({ reason: 'OwnershipConflict', message: 'Service shop/web exists already' }),
});

describe('the text of a diff', () => {
  test('shows fields, who loses them, and what is refused', () => {
    const objects = [
      ...[previewOf('Pod', 'unchanged'), { ...changed, waitsFor: ref('Job') }],
      ...[refused, previewOf('Secret', 'deleted')],
    ];
    expect(textOf({ objects, explanations: [] }, plain)).toBe(
      [
        'ConfigMap shop/web would be changed, once Job shop/web is ready',
        '  .data.a',
        '- "1"',
        '+ "2"',
        '  .data.b',
        '- |',
        '- 2',
        '- 3',
        '  .data.a is taken from kubectl-edit',
        '',
        "Service shop/web can't be applied: OwnershipConflict",
        '  Service shop/web exists already',
        '',
        'Secret shop/web would be deleted',
        '',
        '1 to change, 1 to delete, 1 refused',
        '',
      ].join('\n'),
    );
  });

  test('has tables with columns, and leaves out those without rows', () => {
    const tables = [
      {
        title: 'Deleted',
        columns: ['JOB', 'TTL'],
        rows: [
          ['shop/pi-1000', '15 s'],
          ['shop/pi', '3600 s'],
        ],
      },
      { title: 'Stay', columns: ['JOBS', 'REASON'], rows: [] },
    ];
    const explained = {
      of: ref('JobWatcher', 'pi'),
      summary: 'would delete 2 of 2 Jobs matched',
      differs: true,
      tables,
    };
    expect(textOf({ objects: [], explanations: [explained] }, plain)).toBe(
      [
        'JobWatcher shop/pi would delete 2 of 2 Jobs matched',
        '',
        '  Deleted',
        '    JOB            TTL',
        '    shop/pi-1000   15 s',
        '    shop/pi        3600 s',
        '',
      ].join('\n'),
    );
  });
});

describe('the values of a Secret', () => {
  const secret = previewOf('Secret', 'changed', {
    before: object('Secret', { data: { same: 'aGlkZGVu', other: 'b2xkCg==', gone: 'Z29uZQo=' } }),
    after: object('Secret', { data: { same: 'aGlkZGVu', other: 'bmV3Cg==', more: 'bW9yZQo=' } }),
  });
  const outcome = { objects: [secret], explanations: [] };
  const values = /aGlkZGVu|b2xkCg|bmV3Cg|Z29uZQo|bW9yZQo/;

  test('are distinguished, and never shown', () => {
    const text = textOf(outcome, plain);
    expect(text).toContain('.data.other\n- (redacted, before)\n+ (redacted, after)\n');
    expect(text).toContain('.data.more\n+ (redacted)\n');
    expect(text).toContain('.data.gone\n- (redacted)\n');
    expect(text).not.toContain('.data.same');
    expect(text).not.toMatch(values);
    expect(JSON.stringify(documentOf(outcome))).not.toMatch(values);
  });

  test('nor is the copy that kubectl keeps', () => {
    const annotations = {
      'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"same":"aGlkZGVu"}}',
    };
    const after = { ...object('Secret', {}), metadata: { name: 'web', annotations } };
    const made = { objects: [previewOf('Secret', 'created', { after })], explanations: [] };
    expect(textOf(made, plain) + JSON.stringify(documentOf(made))).not.toMatch(values);
  });
});

test('JSON has every object, also those that stay, and says whether anything differs', () => {
  const none = { objects: [previewOf('Pod', 'unchanged')], explanations: [] };
  expect(documentOf(none)).toEqual({
    differs: false,
    objects: [{ ...ref('Pod'), action: 'unchanged' }],
    explanations: [],
  });
  expect(documentOf({ objects: [changed, refused], explanations: [] })).toEqual({
    differs: true,
    explanations: [],
    objects: [
      {
        ...{ ...ref('ConfigMap'), action: 'changed', takes: [{ field: '.data.a', manager: 'kubectl-edit' }] },
        fields: [
          { path: '.data.a', before: '1', after: '2' },
          { path: '.data.b', before: '2\n3\n' },
        ],
      },
      {
        ...ref('Service'),
        action: 'failed',
        reason: 'OwnershipConflict',
        message: 'Service shop/web exists already',
      },
    ],
  });
});

test('what the cluster refuses is reported apart from what differs', () => {
  const forbidden = { reason: 'Forbidden', message: 'may not patch services' };
  const others = ['OwnershipConflict', 'QuotaExceeded'].map((reason) => ({ reason, message: reason }));
  expect(refusals([...others, forbidden, forbidden])).toEqual(['may not patch services']);
});
