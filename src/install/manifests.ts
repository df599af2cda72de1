import { ApiObject, App, Chart } from 'cdk8s';
import { Namespace, ServiceAccount } from 'cdk8s-plus-27';
import type { Construct } from 'constructs';
import type { AnyObject } from '../contract/object.js';
import { OperatorAccess } from './access.js';
import { Monitoring } from './monitoring/monitoring.js';
import { INSTALL_NAME, INSTALLATION_LABEL, installLabels } from './names.js';
import { Operator } from './operator.js';
import type { InstallProps } from './props.js';
import { UserRoles } from './user-roles.js';

/** Namespaces that are somebody else's, whose labels aren't ours to set. */
const FOREIGN_NAMESPACE = /^(default|kube-.*)$/;

/** What nothing works without: it has to be there before the rest, and stays when the operator goes. */
class Definitions extends Chart {
  constructor(scope: Construct, id: string, { kinds, managedBy }: InstallProps) {
    super(scope, id, { labels: installLabels(managedBy), disableResourceNameHashes: true });
    for (const { crd } of kinds) new ApiObject(this, crd.metadata.name, crd);
  }
}

/** The operator itself. */
class Installation extends Chart {
  constructor(scope: Construct, id: string, props: InstallProps) {
    const { namespace, managedBy } = props;
    super(scope, id, {
      labels: { ...installLabels(managedBy), [INSTALLATION_LABEL]: namespace },
      disableResourceNameHashes: true,
    });
    if (!FOREIGN_NAMESPACE.test(namespace))
      new Namespace(this, 'Namespace', { metadata: { name: namespace, labels: POD_SECURITY } });
    new ServiceAccount(this, 'ServiceAccount', {
      ...{ metadata: { name: INSTALL_NAME, namespace }, automountToken: false },
    });
    new OperatorAccess(this, 'Access', props);
    new UserRoles(this, 'UserRoles', props);
    new Operator(this, 'Operator', props);
    if (props.monitoring) new Monitoring(this, 'Monitoring', { ...props.monitoring, namespace });
  }
}

const POD_SECURITY = {
  'pod-security.kubernetes.io/enforce': 'restricted',
  'pod-security.kubernetes.io/warn': 'restricted',
};

/** Whatever else needs something comes after it. */
const ORDER = [
  'Namespace',
  'CustomResourceDefinition',
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
  'ConfigMap',
  'NetworkPolicy',
  'Service',
  'PodDisruptionBudget',
  'ServiceMonitor',
  'PrometheusRule',
  'Deployment',
];

/**
 * Everything that an installation consists of, in the order in which it has to be applied.
 *
 * **Guarantees.** In memory, without I/O; the same input gives the same objects in the same order.
 *
 * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
 */
export function installManifests(props: InstallProps): AnyObject[] {
  const app = new App();
  const charts = [new Definitions(app, 'definitions', props), new Installation(app, INSTALL_NAME, props)];
  const objects = charts.flatMap((chart) => chart.toJson() as AnyObject[]).map(inOrder);
  return objects.sort((a, b) => rank(a) - rank(b) || (idOf(a) < idOf(b) ? -1 : 1));
}

function inOrder({ apiVersion, kind, metadata, ...rest }: AnyObject): AnyObject {
  return { apiVersion, kind, metadata, ...rest };
}

function rank({ kind }: AnyObject): number {
  return ORDER.indexOf(kind);
}

function idOf({ metadata: { namespace = '', name } }: AnyObject): string {
  return `${namespace}/${name}`;
}
