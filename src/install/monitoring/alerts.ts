import type { Alert } from './alert.js';
import { jobAlerts } from './job-alerts.js';
import { processAlerts } from './process-alerts.js';
import { resourceAlerts } from './resource-alerts.js';
import { serverAlerts } from './server-alerts.js';
import { workAlerts } from './work-alerts.js';

/** Every alert, by the group that it is in. */
export const alertGroups: Readonly<Record<string, readonly Alert[]>> = {
  'reconstruct.process': processAlerts,
  'reconstruct.server': serverAlerts,
  'reconstruct.work': workAlerts,
  'reconstruct.resources': resourceAlerts,
  'reconstruct.jobs': jobAlerts,
};
