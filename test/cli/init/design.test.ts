import { expect, test } from 'vitest';
import { CliError } from '../../../src/cli/exit.js';
import { CHILDREN, designOf } from '../../../src/cli/init/design.js';

test('children come in the order in which they are applied, whatever their case', () => {
  expect(designOf(['service', 'Deployment', 'CONFIGMAP', 'Service'])).toEqual({
    children: ['ConfigMap', 'Service', 'Deployment'],
    ...{ workloads: ['Deployment'], server: 'Deployment' },
  });
});

test.each([
  ['Deploymnet', /^--children: there is no kind "Deploymnet" that init knows; did you mean Deployment\?/],
  ['Services', /did you mean Service\?/],
  ['Gateway', new RegExp(Object.keys(CHILDREN).join(', '))],
  ['Gateway', /Any other kind is added by hand/],
  ['ClusterRole', /belongs to the whole cluster.*have an admin make it/],
  ['namespace', /belongs to the whole cluster/],
  ['Secret', /would have to stand in the custom resource/],
  ['Pod', /ask for a Deployment/],
])('%s is refused, with what to do', (name, told) => {
  expect(() => designOf([name])).toThrow(CliError);
  expect(() => designOf([name])).toThrow(told);
});

test.each([
  ['Deployment,StatefulSet', /give one/],
  ['Service', /add Deployment/],
  ['Service,CronJob', /add Deployment/],
  ['Deployment,Ingress', /add Service/],
  ['DaemonSet,HorizontalPodAutoscaler', /add Deployment or StatefulSet/],
  ['DaemonSet,PodDisruptionBudget', /add Deployment or StatefulSet/],
  ['ConfigMap,NetworkPolicy', /add Deployment, StatefulSet, DaemonSet, Job or CronJob/],
  ['StatefulSet,PersistentVolumeClaim', /by itself/],
  ['DaemonSet,PersistentVolumeClaim', /leave out one/],
  ['Deployment,CronJob,PersistentVolumeClaim', /keep one/],
  ['Deployment,PersistentVolumeClaim,HorizontalPodAutoscaler', /leave out HorizontalPodAutoscaler/],
  ['Deployment,PersistentVolumeClaim,PodDisruptionBudget', /leave out PodDisruptionBudget/],
])('%s make no sense together', (names, told) => {
  expect(() => designOf(names.split(','))).toThrow(told);
});
