import type * as clients from '@kubernetes/client-node';
import type {
  V1CustomResourceDefinitionVersion,
  V1JSONSchemaProps,
  V1ListMeta,
} from '@kubernetes/client-node';
import type { ApiObjectProps } from 'cdk8s';
import { Construct } from 'constructs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { KosmosAppService } from '../../imports/kosmos.io.js';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import type {
  KubernetesManifest,
  KubernetesTypes,
  ObjectOf,
  Wire,
} from '../../src/author/kubernetes-types.js';
import type { ReferenceProps } from '../../src/author/references.js';
import type { References, PropsOf, SpecOf, StatusOf } from '../../src/author/typed-crd.js';
import type { StandaloneController } from '../../src/contract/kind.js';
import type { CustomResource } from '../../src/contract/object.js';
import type { SandboxContext } from '../../src/testing/operator.js';

/** Checked by the compiler, `tsc -p test`; running it proves little more than that it loads. */
const crd = defineCrd({
  group: 'web.example.com',
  kind: 'Guestbook',
  description: 'A guestbook on the web.',
  spec: {
    type: 'object',
    required: ['image', 'ports'],
    properties: {
      image: { type: 'string', minLength: 1 },
      replicas: { type: 'integer', format: 'int32', default: 1 },
      paused: { type: 'boolean' },
      size: { type: 'string', enum: ['small', 'large'] },
      ports: {
        type: 'array',
        items: {
          type: 'object',
          required: ['port'],
          properties: {
            port: { 'x-kubernetes-int-or-string': true },
            name: { type: 'string', nullable: true },
          },
        },
      },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      theme: { type: 'object', properties: { color: { type: 'string', default: 'red' } }, default: {} },
      raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      anything: { 'x-kubernetes-preserve-unknown-fields': true },
    },
  },
  status: { readyReplicas: { type: 'integer' }, url: { type: 'string' } },
});

interface Spec {
  readonly image: string;
  readonly replicas: number;
  readonly paused?: boolean;
  readonly size?: 'small' | 'large';
  readonly ports: readonly { readonly port: number | string; readonly name?: string | null }[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly theme: { readonly color: string };
  readonly raw?: Readonly<Record<string, unknown>>;
  readonly anything?: unknown;
}

class Guestbook extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec }: PropsOf<typeof crd>) {
    super(scope, id);
    expectTypeOf(metadata.namespace).toEqualTypeOf<string | undefined>();
    expectTypeOf(spec).toEqualTypeOf<Spec>();
  }
}

describe('the types of a CRD that defineCrd makes', () => {
  it('are those of its schemas', () => {
    expectTypeOf<SpecOf<typeof crd>>().toEqualTypeOf<Spec>();
    expectTypeOf<StatusOf<typeof crd>>().toEqualTypeOf<{
      readonly readyReplicas?: number;
      readonly url?: string;
    }>();
  });

  it('take no member for required whose names the compiler has widened, as in what is spread', () => {
    const spread = defineCrd({
      ...{ group: 'web.example.com', kind: 'Spread', description: 'Spread.' },
      spec: { type: 'object', properties: {} },
      status: {
        nested: {
          ...{ type: 'object', required: ['a'] },
          properties: { a: { type: 'string' }, b: { type: 'string' } },
        },
      },
    });
    expect(spread.kind).toBe('CustomResourceDefinition');
    expectTypeOf<StatusOf<typeof spread>>().toEqualTypeOf<{
      readonly nested?: { readonly a?: string; readonly b?: string };
    }>();
  });

  it('are those that the kind is written in', () => {
    const kind = defineKind({
      crd,
      construct: Guestbook,
      children: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      status({ cr, children }) {
        expectTypeOf(cr.spec).toEqualTypeOf<Spec>();
        expectTypeOf(cr.status).toEqualTypeOf<StatusOf<typeof crd> | undefined>();
        // @ts-expect-error The status has no such field.
        expectTypeOf(cr.status?.replicas).toBeUndefined();
        return {
          readiness: { phase: 'ready', reason: 'Available', message: `${children.length}` },
          fields: { readyReplicas: cr.spec.replicas },
        };
      },
    });
    expectTypeOf(kind.name).toBeString();
  });

  it('are those of the children in the status function', () => {
    const service = { apiVersion: 'v1', kind: 'Service' } as const;
    defineKind({
      ...{ crd, construct: Guestbook },
      children: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          keep: ({ spec }: ObjectOf<'apps/v1', 'Deployment'>) => ({ paused: spec?.paused === true }),
        },
        service,
        { apiVersion: 'web.example.com/v1', kind: 'Theme' },
      ],
      status({ children }) {
        expectTypeOf(children[0]?.kind).toEqualTypeOf<'Deployment' | 'Service' | 'Theme' | undefined>();
        for (const child of children) {
          if (child.kind === 'Deployment') {
            expectTypeOf(child.status?.readyReplicas).toEqualTypeOf<number | undefined>();
            expectTypeOf(child.paused).toEqualTypeOf<boolean>();
          }
          if (child.kind === 'Theme') expectTypeOf(child.status).toBeUnknown();
        }
        const found = children.find((child) => child.kind === 'Service');
        return { fields: { url: found?.status?.loadBalancer?.ingress?.[0]?.hostname ?? '' } };
      },
      handOver: ({ children }) => {
        expectTypeOf(children[0]?.kind).toEqualTypeOf<'Deployment' | 'Service' | 'Theme' | undefined>();
        return [];
      },
    });
  });

  it('refuse a construct that expects another spec, and a status that the schema does not have', () => {
    class Other extends Construct {
      constructor(
        scope: Construct,
        id: string,
        readonly props: { readonly spec: { readonly text: string } },
      ) {
        super(scope, id);
      }
    }
    const children = [] as const;
    // @ts-expect-error Its spec has no text.
    defineKind({ crd, construct: Other, children });
    const readiness = { phase: 'ready', reason: 'Available', message: '' } as const;
    const props = { crd, construct: Guestbook, children };
    const text = () => ({ readiness, fields: { readyReplicas: '1' } });
    // @ts-expect-error It is a number.
    defineKind({ ...props, status: text });
    const misspelt = () => ({ readiness, fields: { ready: 1 } });
    // @ts-expect-error There is no such field.
    defineKind({ ...props, status: misspelt });
  });
});

describe('the types of a class that cdk8s import has generated', () => {
  it('have literals for enums, and numbers and text for unions', () => {
    type Ports = NonNullable<SpecOf<typeof KosmosAppService>['ports']>;
    expectTypeOf<Ports[number]['protocol']>().toEqualTypeOf<'TCP' | 'UDP' | 'SCTP' | undefined>();
    expectTypeOf<Ports[number]['targetPort']>().toEqualTypeOf<number | string | undefined>();
    expectTypeOf<Ports[number]['port']>().toEqualTypeOf<number>();
    type Limits = NonNullable<SpecOf<typeof KosmosAppService>['resources']>['limits'];
    expectTypeOf<NonNullable<Limits>>().toEqualTypeOf<{ readonly [name: string]: number | string }>();
  });

  it('have text for dates, and keep what a member called value is', () => {
    enum Level {
      LOW = 1,
      HIGH = 2,
    }
    interface Generated {
      readonly spec?: {
        readonly until?: Date;
        readonly level: Level;
        readonly env: { readonly value?: string };
        readonly free: any; // eslint-disable-line @typescript-eslint/no-explicit-any
      };
    }
    type Website = new (scope: Construct, id: string, props?: Generated) => Construct;
    expectTypeOf<SpecOf<Website>>().toEqualTypeOf<{
      readonly until?: string;
      readonly level: 1 | 2;
      readonly env: { readonly value?: string };
      readonly free: unknown;
    }>();
  });
});

describe('the types of the testing kit', () => {
  it('let an operator run a controller that has no CRD', () => {
    expectTypeOf<StandaloneController>().toExtend<Parameters<SandboxContext['run']>[0][number]>();
  });
});

describe('the types of what is observed', () => {
  const children = [{ apiVersion: 'v1', kind: 'Service' }] as const;

  class Guestbook extends Construct {
    constructor(
      scope: Construct,
      id: string,
      { observed }: PropsOf<typeof crd, { children: typeof children }>,
    ) {
      super(scope, id);
      expectTypeOf(observed[0]?.kind).toEqualTypeOf<'Service' | undefined>();
      expectTypeOf(observed[0]?.status?.loadBalancer?.ingress?.[0]?.ip).toEqualTypeOf<string | undefined>();
    }
  }

  it('are those of the children, where the kind says so', () => {
    defineKind({ crd, construct: Guestbook, children, observes: true });
    // @ts-expect-error The kind doesn't observe them.
    defineKind({ crd, construct: Guestbook, children });
  });

  it('says of each type whether it was created as it is rendered now, where that one has createOnly', () => {
    type Both = readonly [
      { apiVersion: 'v1'; kind: 'Service' },
      { apiVersion: 'apps/v1'; kind: 'ReplicaSet'; createOnly: readonly ['.spec.template'] },
    ];
    const outdated = ({ observed }: PropsOf<typeof crd, { children: Both }>) =>
      observed.filter((child) => child.kind === 'ReplicaSet').map(({ isCurrent }) => isCurrent);
    expectTypeOf(outdated).returns.toEqualTypeOf<boolean[]>();
  });
});

describe('the types of references', () => {
  const references = {
    tls: { apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.image },
    key: { apiVersion: 'v1', kind: 'Secret', data: true, name: (cr) => cr.spec.size },
    theme: { apiVersion: 'v1', kind: 'ConfigMap', optional: true, name: (cr) => cr.spec.image },
    backends: { apiVersion: 'v1', kind: 'Service', labels: (cr) => cr.spec.labels },
    database: { apiVersion: 'db.example.com/v1', kind: 'Database', name: (cr) => cr.spec.image },
  } as const satisfies References<typeof crd>;
  type Props = PropsOf<typeof crd, { references: typeof references }>;

  class Guestbook extends Construct {
    constructor(
      scope: Construct,
      id: string,
      { references: { tls, key, theme, backends, database } }: Props,
    ) {
      super(scope, id);
      expectTypeOf(tls.checksum).toEqualTypeOf<string>();
      expectTypeOf(tls.data).toEqualTypeOf<unknown>();
      expectTypeOf(key?.data).toEqualTypeOf<Readonly<Record<string, string>> | undefined>();
      expectTypeOf(theme?.data).toEqualTypeOf<{ readonly [key: string]: string } | undefined>();
      expectTypeOf(theme).extract<undefined>().toEqualTypeOf<undefined>();
      expectTypeOf(backends[0]?.spec?.clusterIP).toEqualTypeOf<string | undefined>();
      expectTypeOf(database.spec).toEqualTypeOf<unknown>();
    }
  }

  it('are those of the objects, by name and labels', () => {
    defineKind({
      ...{ crd, construct: Guestbook, references, children: [{ apiVersion: 'v1', kind: 'Service' }] },
      status: ({ references: read }) => {
        expectTypeOf(read?.tls.checksum).toEqualTypeOf<string | undefined>();
        return {};
      },
    });
    // @ts-expect-error The construct reads more.
    defineKind({ crd, construct: Guestbook, references: { tls: references.tls }, children: [] });
  });

  it('are to be declared, also where all of them are lists', () => {
    type Lists = PropsOf<typeof crd, { references: Pick<typeof references, 'backends'> }>;

    class Listing extends Construct {
      constructor(scope: Construct, id: string, { references: { backends } }: Lists) {
        super(scope, id);
        expectTypeOf(backends.length).toEqualTypeOf<number>();
      }
    }

    // @ts-expect-error It declares none.
    defineKind({ crd, construct: Listing, children: [] });
  });

  it('are by either name or labels', () => {
    type Type = Readonly<Record<'apiVersion' | 'kind', string>>;
    type Name = Type & { readonly name: () => string };
    type Labels = { readonly labels: () => Readonly<Record<string, string>> };

    expectTypeOf<Name>().toExtend<ReferenceProps<unknown>>();
    expectTypeOf<Type & Labels>().toExtend<ReferenceProps<unknown>>();
    expectTypeOf<Name & Labels>().not.toExtend<ReferenceProps<unknown>>();
    expectTypeOf<Type>().not.toExtend<ReferenceProps<unknown>>();
  });
});

describe('the types of generated values', () => {
  const values = {
    ...{ password: { length: 24 }, key: { bytes: 32 } },
    tls: { dnsNames: ({ metadata: { name } }: CustomResource) => [name] },
  } as const;

  class Guestbook extends Construct {
    constructor(
      scope: Construct,
      id: string,
      { generated }: PropsOf<typeof crd, { generated: typeof values }>,
    ) {
      super(scope, id);
      expectTypeOf(generated.keys.password).toEqualTypeOf<{
        readonly name: string;
        readonly key: 'password';
      }>();
      expectTypeOf<keyof typeof generated.keys>().toEqualTypeOf<
        'password' | 'key' | 'tls.crt' | 'tls.key' | 'ca.crt'
      >();
    }
  }

  it('are references by their names', () => {
    defineKind({ crd, construct: Guestbook, generated: values, children: [] });
    // @ts-expect-error The construct needs more.
    defineKind({ crd, construct: Guestbook, generated: { password: {} }, children: [] });
  });
});

describe('the types of Kubernetes', () => {
  it('have the names that the API server has, not those of client-node', () => {
    const policy = {
      ...({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' } as const),
      metadata: { name: 'web' },
      spec: { podSelector: {}, ingress: [{ from: [{ podSelector: {} }] }] },
    } satisfies KubernetesManifest;
    const misnamed = [{ _from: [{ podSelector: {} }] }];

    expectTypeOf(policy).toExtend<KubernetesManifest>();
    ({
      ...policy,
      // @ts-expect-error The API server would drop it.
      spec: { podSelector: {}, ingress: misnamed },
    }) satisfies KubernetesManifest;
    expectTypeOf<Wire<V1ListMeta>['continue']>().toEqualTypeOf<string | undefined>();
    expectTypeOf<Wire<V1JSONSchemaProps>>().toHaveProperty('x-kubernetes-list-map-keys');
    expectTypeOf<Wire<V1JSONSchemaProps>['default']>().toBeAny();
    expectTypeOf<Wire<V1JSONSchemaProps>>().toHaveProperty('$ref');
    expectTypeOf<Wire<V1CustomResourceDefinitionVersion>>().toHaveProperty('schema');
  });

  it('are all those of its stable API versions', () => {
    type Client = Extract<keyof typeof clients, `${string}V${number}Api`>;
    type Api = { [Name in Client]: InstanceType<(typeof clients)[Name]> }[Client];
    type ListOf<Of> = Of extends unknown ? Of[Extract<keyof Of, `list${string}`>] : never;
    type Items<List> = List extends (...args: never) => Promise<{ items: (infer Item)[] }> ? Item : never;
    type Known = { [ApiVersion in keyof KubernetesTypes]: ValueOf<KubernetesTypes[ApiVersion]> };
    type ValueOf<Of> = Of[keyof Of];

    expectTypeOf<ValueOf<Known>>().toEqualTypeOf<Items<ListOf<Api>>>();
    expectTypeOf<keyof KubernetesTypes['apps/v1']>().toEqualTypeOf<
      'ControllerRevision' | 'DaemonSet' | 'Deployment' | 'ReplicaSet' | 'StatefulSet'
    >();
  });

  it('are those of cdk8s, too', () => {
    expectTypeOf<KubernetesManifest>().toExtend<ApiObjectProps>();
    expectTypeOf<
      ApiObjectProps & { readonly apiVersion: 'v1'; readonly kind: 'Service' }
    >().toExtend<KubernetesManifest>();
  });
});
