import { describe, expect, it, vi } from 'vitest';
import type { ChangeSet } from '../../src/contract/change.js';
import type { ComposedTexts, Plan } from '../../src/contract/plan.js';
import { bitsOf } from '../../src/author/generated.js';
import { GeneratedSecrets } from '../../src/author/generated.js';
import type { ComposedValues } from '../../src/author/generated.js';
import { makeValue, secretType } from '../../src/values/generated.js';
import { issueCertificate } from '../../src/values/x509.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { OwnedChildren } from '../../src/author/owned-children.js';
import type { OwningKind } from '../../src/author/owned-children.js';
import { OperatorError } from '../../src/contract/error.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';

const WIDGET = resourceType({ apiVersion: 'demo.io/v1', kind: 'Widget' });
const DEPLOYMENT = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
const values = { password: {}, key: { bytes: 16 } };
const generated = new GeneratedSecrets(WIDGET, values);
const WEB: AnyObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace: 'shop', name: 'web' },
};

type Composed = Parameters<ComposedValues<{ readonly key: string }>['texts']>[0];

const cr = (
  annotations: Readonly<Record<string, string>> = {},
  conditions: readonly object[] = [],
): CustomResource => ({
  ...{ apiVersion: 'demo.io/v1', kind: 'Widget', spec: {}, status: { conditions } },
  metadata: { namespace: 'shop', name: 'web', uid: 'u', generation: 1, annotations },
});

const rotate = (token: string) => ({ 'reconstruct.kosmos.io/rotate': token });

/** The Secret as the API server has it. */
function live(token = '', data: object = { password: 'cHc=', key: 'aw==' }, more: object = {}): AnyObject {
  const ownerReferences = [
    { apiVersion: 'demo.io/v1', kind: 'Widget', name: 'web', uid: 'u', controller: true },
  ];
  const annotations = { 'reconstruct.kosmos.io/generated': token };
  const metadata = {
    namespace: 'shop',
    name: 'web-widget-generated',
    uid: 's',
    ownerReferences,
    annotations,
    ...more,
  };
  return { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data };
}

const kind: OwningKind = {
  ...{ name: 'widget', type: WIDGET, construct: undefined as never, generated },
  ...{ children: [DEPLOYMENT], formerChildren: [] },
};
const render = vi.fn(() => [WEB]);

function planned(
  resource: CustomResource,
  secret?: AnyObject,
  more: Partial<OwningKind> = {},
  now = new Date(),
) {
  const controller = new OwnedChildren({ ...kind, ...more }, { render });
  const watch = controller.watches.find(({ type }) => groupKind(type) === 'Secret')!;
  const kept = secret && watch.keep!(secret);
  const get = ({ kind }: { kind: string }) => (kind === 'Secret' ? kept : (resource as unknown as AnyObject));
  // No field manager applies it.
  const controlledBy = ({ kind }: { kind: string }, _: string, manager?: string) =>
    kind === 'Secret' && kept && manager === undefined ? [kept] : [];
  const rest = { all: () => [], mappedTo: () => [], find: () => ({}) };
  return {
    watch,
    kept,
    plan: controller.reconcile('shop/web', { get, controlledBy, ...rest }, now),
  };
}

/** Objects that are applied as they are rendered. */
const applied = ({ steps }: Plan) => steps.flatMap((step) => (step.do === 'own' ? [step.object] : []));
const prunes = ({ steps }: Plan) => steps.some((step) => step.do === 'prune');
const notesOf = (plan: Plan, made: readonly string[]) =>
  plan.conclude(done('configured', made)).events.map(({ event }) => event.note);
/** Steps that do something. */
const stepsOf = ({ steps }: Plan) => steps.filter((step) => step.do !== 'barrier');

const done = (action: 'created' | 'configured' | 'unchanged', made: readonly string[] = []): ChangeSet => [
  {
    ref: { apiVersion: 'v1', kind: 'Secret', namespace: 'shop', name: 'web-widget-generated' },
    action,
    made,
  },
];

describe('generated values', () => {
  it.each([
    ['there is no Secret', undefined, {}],
    ['a value is missing', live('', { password: 'cHc=' }), {}],
    ['a rotation is asked for', live('1'), rotate('2')],
    ['the Secret is another owner’s', live('', undefined, { ownerReferences: [] }), {}],
  ])(
    'come before the children where %s, and the plan is made again without a status between',
    (_, secret, annotations) => {
      const { plan } = planned(cr(annotations), secret);
      expect(stepsOf(plan)).toMatchObject([
        { do: 'generate', object: { metadata: { name: 'web-widget-generated' } }, values },
      ]);
      expect(stepsOf(plan)[0]?.object).not.toHaveProperty('data');
      expect(plan.conclude(done('configured')).next).toBe('now');
      expect(plan.conclude(done('unchanged')).next).toBeUndefined();
      expect(plan.conclude(done('created')).status).toEqual([]);
      const error = new OperatorError({ reason: 'OwnershipConflict', message: 'no' });
      const { status } = plan.conclude([{ ...done('created')[0]!, action: 'failed', error }]);
      const conditions: unknown = expect.arrayContaining([
        expect.objectContaining({ reason: 'OwnershipConflict' }),
      ]);
      expect(status).toMatchObject([{ status: { conditions } }]);
    },
  );

  it.each([
    ['nothing is asked for', live('1'), {}],
    ['they were made for that token', live('1'), rotate('1')],
    ['there are more than the kind has', live('', { password: 'a', key: 'b', old: 'c' }), {}],
  ])('stay where %s', (_, secret, annotations) => {
    const { plan } = planned(cr(annotations), secret);
    expect(applied(plan)).toEqual([WEB]);
    expect(stepsOf(plan)).toHaveLength(1);
  });

  it('are kept and rendered as their names and a checksum that follows them and the UID', () => {
    const inputsFor = (secret: AnyObject): { generated: { checksum: string } } => {
      const { kept, plan } = planned(cr(), secret);
      expect(JSON.stringify(kept)).not.toContain('cHc=');
      expect(stepsOf(plan)).toHaveLength(1);
      return (render.mock.calls.at(-1) as unknown[])[2] as never;
    };
    const first = inputsFor(live());
    expect(first).toMatchObject({
      generated: {
        secretName: 'web-widget-generated',
        keys: { password: { name: 'web-widget-generated', key: 'password' } },
      },
    });
    expect(first.generated.checksum).toMatch(/^keyed-[0-9a-f]{32}$/);
    // Of other values, and of a Secret that is made again with the same ones: no one without its UID can try out values.
    for (const other of [
      live('', { password: 'b3RoZXI=', key: 'aw==' }),
      live('', undefined, { uid: 'other' }),
    ])
      expect(inputsFor(other).generated.checksum).not.toBe(first.generated.checksum);
  });

  it('are read by label; where the kind watches all Secrets, with those, and are never pruned', () => {
    expect(planned(cr()).watch).toMatchObject({
      selector: 'demo.io/widget',
      writes: ['create', 'patch', 'delete'],
    });
    const all = planned(cr(), live(), { children: [DEPLOYMENT, secretType] });
    expect(all.watch.selector).toBeUndefined();
    expect(all.watch.writes).toEqual(['create', 'patch', 'delete']);
    expect(prunes(all.plan)).toBe(false);
    expect(prunes(planned(cr(), live(), { formerChildren: [secretType] }).plan)).toBe(false);
  });

  it('stall where one is empty, and nothing is made or applied', () => {
    const { plan } = planned(cr(), live('', { password: '', key: 'b' }));
    expect(stepsOf(plan)).toEqual([]);
    expect(plan.error).toMatchObject({ reason: 'EmptyValue', retry: 'onChange' });
    expect(plan.error?.message).toContain('Secret shop/web-widget-generated: the value of password is empty');
    expect(planned(cr(), live('', { password: 'a', key: 'b', old: '' })).plan.error).toBeUndefined();
  });

  it('are kept in mind by the names that the kind has, whatever else is in the Secret', () => {
    const keep = generated.watch({ type: secretType, mapsTo: () => [] }).keep!;
    expect(keep(live('', { password: 'a', other: 'b', constructor: 'c' }))).toMatchObject({
      keys: ['password'],
    });
  });

  it('are made again where one is empty that counts as missing then', () => {
    const ofKind = new GeneratedSecrets(WIDGET, { ...values, password: { emptyIsMissing: true } });
    const made = (data: object) => planned(cr(), live('', data), { generated: ofKind }).plan;
    const again = made({ password: '', key: 'b' });
    expect(stepsOf(again)).toMatchObject([{ do: 'generate', values: { password: {}, key: {} } }]);
    expect(notesOf(again, ['password'])).toEqual([
      'Secret web-widget-generated: made new values of password',
    ]);
    expect(made({ password: 'a', key: '' }).error).toMatchObject({ reason: 'EmptyValue' });
  });

  describe('of a Secret from before a rotation', () => {
    const conditionOf = (plan: Plan) =>
      (plan.conclude([]).status[0]?.status as { conditions: readonly AnyObject[] }).conditions.find(
        ({ type }) => type === 'Rotated',
      ) as Readonly<Record<string, string>> | undefined;
    const followed = [{ ...conditionOf(planned(cr(rotate('2')), live('2')).plan) }];

    it('stall where the status says that it was followed, until another text is given, or none', () => {
      expect(followed).toMatchObject([{ status: 'True', message: 'reconstruct.kosmos.io/rotate=2' }]);
      const { plan } = planned(cr(rotate('2'), followed), live('1'));
      expect(stepsOf(plan)).toEqual([]);
      expect(plan.error).toMatchObject({ reason: 'SecretRestored', retry: 'onChange' });
      expect(plan.error?.message).toMatch(
        /^Secret shop\/web-widget-generated .*before .*rotate=2, .*; remove the annotation .*another text/,
      );
      expect(conditionOf(plan)).toEqual(followed[0]);

      const kept = planned(cr({}, followed), live('1')).plan;
      expect(applied(kept)).toEqual([WEB]);
      expect(conditionOf(kept)).toBeUndefined();
      expect(stepsOf(planned(cr(rotate('3'), followed), live('1')).plan)).toMatchObject([
        { do: 'generate', values },
      ]);
    });

    it.each([
      ['the status says so of another text', rotate('3'), live('1')],
      ['the Secret has gone', rotate('2'), undefined],
    ])('are made again where %s', (_, annotations, secret) => {
      const { plan } = planned(cr(annotations, followed), secret);
      expect(stepsOf(plan)).toMatchObject([{ do: 'generate', values }]);
    });
  });

  it.each([
    ['DSN', true],
    ['.pgpass', true],
    ['constructor', true],
    ['uri', false],
    ['password', false],
    ['tls.crt', false],
    ['ca.key', false],
    ['a b', false],
    ['', false],
  ])('have the key %s among texts whose keys a custom resource chooses: %s', (key, isFree) => {
    const texts = ({ cr: { spec }, values }: Composed) => ({ [spec.key]: `password=${values.password}` });
    const parts = {
      ...{ password: {}, uri: { text: () => 'db' }, tls: { dnsNames: () => ['web'] } },
      template: { texts },
    };
    const secrets = new GeneratedSecrets(WIDGET, parts);
    const { plan } = planned({ ...cr(), spec: { key } }, undefined, { generated: secrets });
    if (!isFree) {
      expect(plan.error).toMatchObject({ reason: 'Invalid', retry: 'onChange' });
      return;
    }
    const [step] = stepsOf(plan) as { texts?: ComposedTexts }[];
    expect(step?.texts?.compose({ password: 'x' })).toEqual({ uri: 'db', [key]: 'password=x' });
    expect(Object.keys(secrets.propsOf(cr()).keys)).not.toContain(key);
  });

  describe('with a certificate', () => {
    const NOW = new Date('2026-01-01T00:00:00Z');
    const props = { dnsNames: ({ spec }: CustomResource<{ names: string[] }>) => spec.names };
    const certified = new GeneratedSecrets(WIDGET, { tls: props }, (name) => `${name}-tls`);
    const named = (...names: string[]) => ({ ...cr(), spec: { names } });
    const planOf = (resource: CustomResource, secret?: AnyObject) =>
      planned(resource, secret, { generated: certified }).plan;

    it('ask for its names in one form, under the name of the Secret that the kind gives', () => {
      expect(stepsOf(planOf(named('b.Shop', 'a.shop', 'b.shop')))).toMatchObject([
        {
          object: { type: 'kubernetes.io/tls', metadata: { name: 'web-tls' } },
          certificates: { tls: { dnsNames: ['a.shop', 'b.shop'], days: 90 } },
        },
      ]);
      const keys = ['tls.crt', 'tls.key', 'ca.crt'].map((key) => [key, { name: 'web-tls', key }]);
      expect(certified.propsOf(cr())).toMatchObject({
        secretName: 'web-tls',
        keys: Object.fromEntries(keys) as object,
      });
      expect(certified.keyOf(cr())).toBe('shop/web-tls');
    });

    it.each([
      [[], 'it has no DNS name'],
      [['web', 'web_1'], '"web_1" is no DNS name'],
      [[`${'a'.repeat(64)}.shop`], '"a'],
      [['*'], '"*" is no DNS name'],
    ])('stall for the names %j', (names, what) => {
      const { error, steps } = planOf(named(...names));
      expect(steps.filter((step) => step.do === 'generate')).toEqual([]);
      expect(error).toMatchObject({ reason: 'InvalidCertificate', retry: 'onChange' });
      expect(error?.message).toContain(`The certificate tls of Widget shop/web can't be issued: ${what}`);
    });

    it('are planned again when it is to be renewed, and not while that is paused', async () => {
      const times = { notBefore: NOW.getTime(), notAfter: NOW.getTime() + 3_000 };
      const ca = await issueCertificate({ commonName: 'ca', ...times });
      const leaf = await issueCertificate({ ...times, commonName: 'a', names: ['a.shop'], issuer: ca });
      const all = Object.entries({ 'ca.crt': ca.cert, 'tls.crt': leaf.cert, 'tls.key': leaf.key });
      const data = Object.fromEntries(all.map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
      const secret = live('', data, { name: 'web-tls' });
      const at = (milliseconds: number, annotations = {}) => {
        const now = new Date(NOW.getTime() + milliseconds);
        const resource = { ...named('a.shop'), metadata: cr(annotations).metadata };
        const { plan } = planned(resource, secret, { generated: certified }, now);
        return [stepsOf(plan).map((step) => step.do), plan.conclude([]).next];
      };
      expect(at(1_999)).toEqual([['own'], new Date(NOW.getTime() + 2_000)]);
      expect(at(2_000)[0]).toEqual(['generate']);
      expect(at(2_000, { 'reconstruct.kosmos.io/paused': 'true' })).toEqual([[], undefined]);
    });
  });

  it('are announced by what was made', () => {
    const note = (secret: AnyObject | undefined, made: string[], annotations = {}) =>
      notesOf(planned(cr(annotations), secret).plan, made);
    expect(note(undefined, ['password', 'key'])).toEqual([
      'Secret web-widget-generated: made new values of password, key',
    ]);
    expect(note(live('', { key: 'aw==' }), ['password'])).toEqual([
      'Secret web-widget-generated: made new values of password',
    ]);
    expect(note(live(), ['password', 'key'], rotate('2'))).toEqual([
      'Secret web-widget-generated: replaced all values, for reconstruct.kosmos.io/rotate=2',
    ]);
    // Another writer has taken off a label, so the Secret isn't seen, or the owner.
    for (const secret of [undefined, live('', undefined, { ownerReferences: [] })])
      expect(note(secret, [])).toEqual([]);
  });

  it('have the length and the characters that are asked for', () => {
    const last = (below: number) => below - 1;
    expect(makeValue({}, last)).toBe('9'.repeat(32));
    expect(makeValue({ length: 3, alphabet: 'ab' }, last)).toBe('bbb');
    expect(Buffer.from(makeValue({ bytes: 3 }, last), 'base64')).toEqual(Buffer.from([255, 255, 255]));
    expect([bitsOf({ bytes: 16 }), bitsOf({ length: 20, alphabet: '01' })]).toEqual([128, 20]);
  });
});
