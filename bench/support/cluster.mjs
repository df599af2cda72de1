// A control plane of the bench's own, as its admin sees it: raw requests over the project's own transport.
import { loadKubeconfig } from '../../lib/client/kubeconfig.js';
import { UndiciTransport } from '../../lib/client/transport.js';
import { appService } from '../../lib/kinds/app-service/kind.js';
import { startSandbox } from '../../lib/sandbox/control-plane.js';
import { startWatchdog } from '../../lib/sandbox/watchdog.js';
import { each, until } from './util.mjs';

const [deployment, service] = appService.children;
export { appService, deployment, service };

export const pod = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const namespaceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };

/** As many as are in work at once: the default of `reconstruct run`. */
export const CONCURRENCY = 16;

export class BenchCluster {
  user = 'operator';

  /**
   * @param kinds whose custom resources it takes
   * @param apiOnly without controllers: where they have no part in what is measured, and would take their time
   */
  static async start({ kinds = [appService], apiOnly = false } = {}) {
    const sandbox = await startSandbox({
      apiOnly,
      users: ['operator'],
      // Ten thousand NodePort Services are more than the usual 2,768 ports.
      apiServerArguments: ['--service-node-port-range=1024-65535'],
    });
    const cluster = new BenchCluster(
      sandbox,
      new UndiciTransport(loadKubeconfig({ kubeconfig: sandbox.adminKubeconfig }), 'bench'),
      await startWatchdog(),
      { kinds, apiOnly },
    );
    await cluster.prepare();
    return cluster;
  }

  constructor(sandbox, transport, watchdog, { kinds, apiOnly }) {
    Object.assign(this, { sandbox, transport, watchdog, kinds, apiOnly });
  }

  async prepare() {
    // Which rights it needs is the tests' subject.
    await this.sandbox.kubectl([
      'create',
      'clusterrolebinding',
      this.user,
      '--clusterrole=cluster-admin',
      `--user=${this.user}`,
    ]);
    for (const { crd } of this.kinds) {
      await this.sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(crd) });
      // Without conditions yet, the second fails at once.
      for (const what of ['jsonpath={.status.conditions}', 'condition=Established'])
        await this.sandbox.kubectl(['wait', `--for=${what}`, `crd/${crd.metadata.name}`]);
    }
    // The garbage collector learns of new kinds when it starts.
    if (!this.apiOnly) await this.sandbox.restartControllerManager();
    for (const { type } of this.kinds) {
      const path = pathOf(type, 'default');
      const answer = () => this.transport.request({ method: 'GET', path });
      await until('the kind to be served', async () => (await answer()).status === 200);
    }
  }

  async stop() {
    await this.transport.close();
    await this.sandbox.stop();
    await this.watchdog.release();
  }

  async makeNamespace(name) {
    await this.send('POST', pathOf(namespaceType), {
      body: { ...headOf(namespaceType), metadata: { name } },
    });
    return name;
  }

  /** A complete list. */
  async list(type, namespace) {
    const items = [];
    let token;
    let resourceVersion;
    do {
      const query = { limit: '1000', ...(token && { continue: token }) };
      const page = await this.send('GET', pathOf(type, namespace), { query });
      for (const item of page.items) items.push({ ...item, ...headOf(type) });
      token = page.metadata.continue;
      resourceVersion = page.metadata.resourceVersion;
    } while (token);
    return { items, resourceVersion };
  }

  create(type, object) {
    return this.send('POST', pathOf(type, object.metadata.namespace), { body: object });
  }

  /** Deletes all custom resources of a namespace and their children, and waits until all has been collected. */
  async deleteAll(namespace) {
    const types = [appService.type, service, deployment, pod];
    // One by one, since the deletion of a whole collection takes longer than a request may.
    for (const type of types.slice(0, -1)) {
      const { items } = await this.list(type, namespace);
      const remove = ({ metadata: { name } }) =>
        this.transport.request({ method: 'DELETE', path: pathOf(type, namespace, name) });
      await each(items, CONCURRENCY, remove);
    }
    for (const type of types) {
      const isEmpty = async () => (await this.list(type, namespace)).items.length === 0;
      await until(`${type.plural} to be collected`, isEmpty, { milliseconds: 300_000, every: 500 });
    }
  }

  /** Server-side apply, by force. */
  apply(type, object, fieldManager) {
    const { namespace, name } = object.metadata;
    return this.send('PATCH', pathOf(type, namespace, name), {
      body: object,
      query: { fieldManager, force: 'true' },
      contentType: 'application/apply-patch+yaml',
    });
  }

  patch(type, namespace, name, body) {
    const contentType = Array.isArray(body) ? 'application/json-patch+json' : 'application/merge-patch+json';
    return this.send('PATCH', pathOf(type, namespace, name), { body, contentType });
  }

  async send(method, path, options = {}) {
    const { status, body } = await this.transport.request({ method, path, ...options });
    if (status > 299) throw new Error(`${method} ${path}: HTTP ${status}: ${body?.message ?? body}`);
    return body;
  }
}

export function headOf({ apiVersion, kind }) {
  return { apiVersion, kind };
}

export function pathOf({ apiVersion, plural }, namespace, name) {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return [group, ...(namespace ? ['namespaces', namespace] : []), plural, ...(name ? [name] : [])].join('/');
}
