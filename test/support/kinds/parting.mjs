// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Parting', description: 'A ConfigMap, and a Job that says goodbye.' },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      /** What is left to do on deletion. */
      last: { type: 'string', enum: ['nothing', 'job', 'words'], default: 'nothing' },
    },
  }),
});

class Parting extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, { finalizes: true }>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { last }, deleted = false }) {
    super(scope, id);
    const configMap = (/** @type {string} */ name) =>
      new ApiObject(this, name, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { last } });
    if (!deleted || last === 'job') configMap(name);
    if (!deleted) return;
    const goodbye = `${name}-goodbye`;
    if (last === 'words') configMap(goodbye);
    if (last === 'job')
      new ApiObject(this, 'Job', {
        ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: goodbye } },
        spec: {
          suspend: true,
          template: {
            spec: { restartPolicy: 'Never', containers: [{ name: 'job', image: 'example.com/job:1' }] },
          },
        },
      });
  }
}

/** @param {boolean} finalizes */
export const partingWith = (finalizes) =>
  defineKind({
    ...{ crd, construct: Parting, finalizes },
    children: [
      { apiVersion: 'v1', kind: 'ConfigMap' },
      { apiVersion: 'batch/v1', kind: 'Job' },
    ],
  });
