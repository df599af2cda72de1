// @ts-check
import { defineKind } from 'cdk8s-reconstruct';
import { ScheduledTask } from './scheduled-task.mjs';

/**
 * What the status holds besides `observedGeneration` and `conditions`.
 * @typedef {object} ScheduledTaskStatus
 * @property {string} [lastScheduleTime]
 * @property {number} active
 */

export const scheduledTask = defineKind({
  crd: new URL('./scheduledtasks.tasks.example.com.yaml', import.meta.url),
  construct: ScheduledTask,
  children: [
    { apiVersion: 'batch/v1', kind: 'CronJob' },
    { apiVersion: 'v1', kind: 'ConfigMap' },
  ],
  status,
});

/**
 * @param {import('cdk8s-reconstruct').StatusInput<import('./scheduled-task.mjs').ScheduledTaskSpec, ScheduledTaskStatus>} input
 * @returns {import('cdk8s-reconstruct').StatusReport<ScheduledTaskStatus>}
 */
function status({ cr, children }) {
  const cronJob = children.find(({ kind }) => kind === 'CronJob');
  /** @type {{ lastScheduleTime?: string, active?: object[] }} */
  const { lastScheduleTime, active = [] } = cronJob?.status ?? {};
  return {
    readiness: cr.spec.suspend
      ? { phase: 'ready', reason: 'Suspended', message: 'No new run starts while spec.suspend is true' }
      : { phase: 'ready', reason: 'Scheduled', message: `The task runs at "${cr.spec.schedule}"` },
    fields: { active: active.length, ...(lastScheduleTime && { lastScheduleTime }) },
  };
}
