// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { childReadiness, defineCrd, defineKind, selectorLabels, worstReadiness } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'rings.example.com',
  kind: 'Ring',
  description: 'Members that are replaced one at a time.',
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['image'],
    properties: {
      image: { type: 'string', minLength: 1, description: 'Image of the members.' },
      members: { type: 'integer', minimum: 1, maximum: 9, default: 3, description: 'Number of members.' },
    },
  }),
});

const children = /** @type {const} */ ([{ apiVersion: 'v1', kind: 'Pod', createOnly: ['.spec'] }]);

/** @typedef {import('cdk8s-reconstruct').PropsOf<typeof crd, { children: typeof children }>} Props */

/** @param {Props['observed'][number] | undefined} pod */
const isReady = (pod) =>
  pod?.metadata.deletionTimestamp === undefined &&
  pod?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

class Ring extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {Props} props
   */
  constructor(scope, id, { metadata: { name }, spec: { image, members }, observed }) {
    super(scope, id);
    const pods = Array.from({ length: members }, (_, index) => {
      const pod = observed.find(({ metadata }) => metadata.name === `${name}-${index}`);
      return { name: `${name}-${index}`, pod };
    });
    const outdated = pods.filter(({ pod }) => pod?.isCurrent === false);
    const isCalm = pods.every(({ pod }) => isReady(pod));
    // One that isn't ready is replaced first; of those that are ready, one when all are.
    const replaced = outdated.find(({ pod }) => !isReady(pod)) ?? (isCalm ? outdated[0] : undefined);
    for (const one of pods) {
      // Left out, it is deleted; once it is gone, it is rendered again.
      if (one === replaced) continue;
      new ApiObject(this, one.name, {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: one.name, labels: selectorLabels(crd, name) } },
        spec: { automountServiceAccountToken: false, containers: [{ name: 'member', image }] },
      });
    }
  }
}

export const ring = defineKind({
  ...{ crd, construct: Ring, children, observes: true },
  status: ({ cr, children: pods }) => {
    const { members = 3 } = cr.spec;
    const current = pods.filter((pod) => pod.isCurrent).length;
    if (current === members) return { readiness: worstReadiness(pods.map(childReadiness)) };
    const message = `${current} of ${members} members are as they are rendered now`;
    return { readiness: { phase: 'progressing', reason: 'Replacing', message } };
  },
});
