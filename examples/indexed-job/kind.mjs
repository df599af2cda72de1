// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const count = /** @type {const} */ ({ type: 'integer', format: 'int32', minimum: 0 });

const crd = defineCrd({
  group: 'jobs.example.com',
  kind: 'IndexedJob',
  description: 'Pods with an index each, so many at once; none any more once all have succeeded.',
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['image'],
    properties: {
      image: { type: 'string', minLength: 1, description: 'Image of the Pods.' },
      completions: { ...count, default: 1, description: 'Number of Pods.' },
      parallelism: { ...count, default: 1, description: 'Number of Pods that run at once.' },
    },
  }),
  status: /** @type {const} */ ({ succeeded: count, complete: { type: 'boolean' } }),
});

const children = /** @type {const} */ ([{ apiVersion: 'v1', kind: 'Pod' }]);

class IndexedJob extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { children: typeof children; remembers: true }>} props
   */
  constructor(scope, id, { metadata: { name }, spec, observed, status: { complete } }) {
    super(scope, id);
    const phases = new Map(observed.map((pod) => [pod.metadata.name, pod.status?.phase]));
    let active = [...phases.values()].filter((phase) => phase !== 'Succeeded' && phase !== 'Failed').length;
    for (let index = 0; index < spec.completions; index++) {
      const podName = `${name}-${index}`;
      if (!phases.has(podName)) {
        // A Pod that is removed later doesn't run again.
        if (complete || active >= spec.parallelism) continue;
        active++;
      }
      const env = [{ name: 'JOB_INDEX', value: String(index) }];
      const container = { name: 'main', image: spec.image, imagePullPolicy: 'IfNotPresent', env };
      new ApiObject(this, podName, {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: podName } },
        spec: { restartPolicy: 'Never', containers: [container] },
      });
    }
  }
}

export const indexedJob = defineKind({
  ...{ crd, children, construct: IndexedJob, observes: true, remembers: true },
  status: ({ cr: { spec }, children: pods, last = {} }) => {
    const done = pods.filter(({ status }) => status?.phase === 'Succeeded').length;
    const complete = last.complete === true || done === spec.completions;
    const succeeded = complete ? spec.completions : done;
    const message = `${succeeded} of ${spec.completions} have succeeded`;
    return {
      fields: { succeeded, complete },
      readiness: complete
        ? { phase: 'ready', reason: 'Completed', message }
        : { phase: 'progressing', reason: 'Running', message },
    };
  },
});
