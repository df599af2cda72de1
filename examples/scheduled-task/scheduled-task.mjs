// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { selectorLabels } from 'cdk8s-reconstruct';

/**
 * The spec as the CRD has it.
 * @typedef {object} ScheduledTaskSpec
 * @property {string} schedule
 * @property {string} image
 * @property {string} [script]
 * @property {boolean} [suspend]
 * @property {number} [keep]
 */

const TYPE = { apiVersion: 'tasks.example.com/v1', kind: 'ScheduledTask' };
const FOLDER = '/task';
const FILE = 'script.sh';

/** A task that runs on a schedule: a CronJob and, where there is a script, a ConfigMap that holds it. */
export class ScheduledTask extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').CustomResourceProps<ScheduledTaskSpec>} props
   */
  constructor(scope, id, { metadata: { name }, spec }) {
    super(scope, id);
    // Before the CronJob, so that no pod has to wait for it.
    if (spec.script) {
      new ApiObject(this, 'Script', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name },
        data: { [FILE]: spec.script },
      });
    }
    this.node.defaultChild = new ApiObject(this, 'CronJob', {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name },
      spec: {
        schedule: spec.schedule,
        // What is undefined isn't rendered, and stays the cluster's choice.
        suspend: spec.suspend,
        successfulJobsHistoryLimit: spec.keep,
        jobTemplate: {
          spec: {
            template: {
              // Children get their labels by themselves; the pods, which are made by the CronJob, don't.
              metadata: { labels: selectorLabels(TYPE, name) },
              spec: podSpec(name, spec),
            },
          },
        },
      },
    });
  }
}

/**
 * @param {string} name
 * @param {ScheduledTaskSpec} spec
 */
function podSpec(name, { image, script }) {
  // Left out, it would stay as it was chosen by the first image's tag.
  const container = { name: 'task', image, imagePullPolicy: 'IfNotPresent' };
  // A Job's pods can't have the default, Always.
  const restartPolicy = 'Never';
  if (!script) return { restartPolicy, containers: [container] };
  return {
    restartPolicy,
    containers: [
      {
        ...container,
        command: ['sh', `${FOLDER}/${FILE}`],
        volumeMounts: [{ name: 'script', mountPath: FOLDER }],
      },
    ],
    volumes: [{ name: 'script', configMap: { name } }],
  };
}
