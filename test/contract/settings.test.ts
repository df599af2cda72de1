import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { GeneratedParts, PropsOf } from '../../src/author/typed-crd.js';
import type { AdminFiles } from '../../src/contract/kind.js';
import { render } from '../../src/testing/render.js';
import { rendered, testedKind } from '../../src/testing/tested-kind.js';

const crd = defineCrd({
  ...{ group: 'demo.io', kind: 'Page', description: 'A ConfigMap.' },
  spec: { type: 'object', properties: {} } as const,
  status: { url: { type: 'string' } },
});

const settingsSchema = {
  type: 'object',
  required: ['domain'],
  properties: {
    domain: { type: 'string' },
    proxy: { type: 'object', default: {}, properties: { image: { type: 'string', default: 'nginx:1' } } },
    tier: { type: 'string', enum: ['gold', 'free'] },
  },
} as const;

const policySchema = {
  type: 'object',
  properties: { max: { type: 'integer', default: 3 }, host: { type: 'string' } },
} as const;

type Schemas = { settingsSchema: typeof settingsSchema; policySchema: typeof policySchema };

class Page extends Construct {
  constructor(scope: Construct, id: string, { settings, policy, metadata }: PropsOf<typeof crd, Schemas>) {
    super(scope, id);
    expectTypeOf(settings).toEqualTypeOf<{
      readonly domain: string;
      readonly proxy: { readonly image: string };
      readonly tier?: 'gold' | 'free';
    }>();
    expectTypeOf(policy).toEqualTypeOf<{ readonly max: number; readonly host?: string } | undefined>();
    new ApiObject(this, 'Data', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: metadata.name } },
      data: { settings, policy },
    });
  }
}

const children = [{ apiVersion: 'v1', kind: 'ConfigMap' }] as const;
const page = defineKind({
  ...{ crd, construct: Page, children, settingsSchema, policySchema },
  status: ({ settings }) => {
    expectTypeOf(settings.proxy.image).toBeString();
    return { fields: { url: settings.domain } };
  },
});

const given = (files: AdminFiles): unknown =>
  render(
    page,
    { apiVersion: 'demo.io/v1', kind: 'Page', metadata: { name: 'web', namespace: 'shop' }, spec: {} },
    files,
  )[0]?.data;

test('settings and policy have the defaults of their schemas', () => {
  const domain = 'example.com';
  expect(given({ settings: { page: { domain } } })).toEqual({
    settings: { domain, proxy: { image: 'nginx:1' } },
  });
  const proxy = { image: 'nginx:2' };
  expect(given({ settings: { page: { domain, proxy } }, policy: { page: {} } })).toEqual({
    ...{ settings: { domain, proxy }, policy: { max: 3 } },
  });
});

test('the schemas may be of a library, and texts of generated values know the settings', () => {
  const domains = z.object({ domain: z.string().default('example.com') });
  type Domains = { settingsSchema: typeof domains; policySchema: typeof domains };
  const generated = {
    token: { length: 24 },
    url: {
      text: ({ cr, values, settings }) => {
        expectTypeOf(settings).toEqualTypeOf<{ domain: string }>();
        return `https://${settings.domain}/${cr.metadata.name}/${values.token}`;
      },
    },
  } as const satisfies GeneratedParts<typeof crd, typeof domains>;
  class Link extends Construct {
    constructor(scope: Construct, id: string, { settings, policy }: PropsOf<typeof crd, Domains>) {
      super(scope, id);
      expectTypeOf(policy).toEqualTypeOf<{ domain: string } | undefined>();
      const data = { url: settings.domain, allowed: policy?.domain };
      new ApiObject(this, 'Data', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'link' }, data });
    }
  }
  const parts = { crd, construct: Link, children, generated };
  const link = defineKind({ ...parts, settingsSchema: domains, policySchema: domains });
  const cr = { apiVersion: 'demo.io/v1', kind: 'Page', metadata: { name: 'web' }, spec: {} };

  const [object] = render(link, cr, { policy: { page: { domain: 'demo.io' } } });
  expect(object?.data).toEqual({ url: 'example.com', allowed: 'demo.io' });
  const either = z.object({ domain: z.union([z.string(), z.number()]) });
  expect(() => defineKind({ crd, construct: Construct, children, settingsSchema: either })).toThrow(
    'defineKind: settingsSchema.domain: is one of several types',
  );
});

test.each([{}, { settings: {} }, { settings: { page: { tier: 'free' } } }])(
  'a required setting without a default has to be given: %j',
  (files) => {
    expect(() => given(files)).toThrow(
      expect.objectContaining({
        reason: 'SettingsMissing',
        message:
          "the operator's settings lack page.domain, which Page needs; give it in the file of --settings",
      }) as Error,
    );
  },
);

test('a sweep has the settings and the policy of its surroundings', () => {
  const settings = { domain: 'example.com' };
  const tested = testedKind(page, [{ spec: {} }], () => ({ settings, policy: {} }));
  expect(tested.context.inForce?.current).toEqual({ settings: { page: settings }, policy: { page: {} } });
  const [data] = rendered(tested, { metadata: { name: 'web' }, spec: {} });
  expect(data).toMatchObject({ data: { settings, policy: { max: 3 } } });
});

test('the construct gets no settings that its kind does not declare', () => {
  // @ts-expect-error The kind declares none.
  defineKind({ crd, construct: Page, children, policySchema });
  const other = {
    type: 'object',
    properties: { domain: { type: 'integer' } },
    required: ['domain'],
  } as const;
  // @ts-expect-error The construct reads text.
  defineKind({ crd, construct: Page, children, policySchema, settingsSchema: other });
});
