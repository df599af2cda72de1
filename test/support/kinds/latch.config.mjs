// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Latch',
    description: 'A ConfigMap that stays open once it was, until it expires.',
  },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      ...{ open: { type: 'boolean' }, seconds: { type: 'integer' }, note: { type: 'string' } },
      ...{ swings: { type: 'boolean' }, fails: { type: 'boolean' } },
    },
  }),
  status: /** @type {const} */ ({
    opened: { type: 'boolean' },
    since: { type: 'string' },
    expired: { type: 'boolean' },
    count: { type: 'integer' },
    notes: { type: 'object', additionalProperties: { type: 'string' } },
  }),
});

class Latch extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { remembers: true }>} props
   */
  constructor(scope, id, { metadata: { name }, status: { opened, expired, count, notes = {} } }) {
    super(scope, id);
    if (expired) return;
    const data = { opened: String(opened), ...(count !== undefined && { count: String(count) }), ...notes };
    new ApiObject(this, 'Config', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }
}

export const latch = defineKind({
  ...{
    crd,
    construct: Latch,
    children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
    remembers: true,
    observes: true,
  },
  status: ({ cr: { spec }, last = {}, now }) => {
    if (spec.fails) throw new Error('no status today');
    const opened = last.opened === true || spec.open === true;
    const { since = now.toISOString() } = last;
    const end = spec.seconds === undefined ? undefined : new Date(Date.parse(since) + spec.seconds * 1_000);
    const expired = end !== undefined && now >= end;
    return {
      fields: {
        opened,
        since,
        expired,
        notes: spec.note === undefined ? { ...last.notes } : spec.note === '' ? {} : { note: spec.note },
        ...(spec.swings && { count: (last.count ?? 0) + 1 }),
      },
      ...(end && !expired && { requeueAt: end }),
    };
  },
});

export default { kinds: [latch] };
