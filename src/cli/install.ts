import type { Command } from 'commander';
import { writeYaml } from '../values/yaml.js';
import {
  applyInstallation,
  availableMonitoring,
  foreignNamespaces,
  installableKinds,
  kindsForAnyCluster,
} from '../install/apply.js';
import type { InstallRequest } from '../install/apply.js';
import { argoHealthPatch } from '../install/argo-health.js';
import { helmChart } from '../install/chart.js';
import { installManifests } from '../install/manifests.js';
import { INSTALL_NAME } from '../install/names.js';
import type { InstallProps, MonitoringPart } from '../install/props.js';
import { uninstall } from '../install/uninstall.js';
import { writeFolder } from './synth/folder.js';
import type { FolderChanges } from './synth/folder.js';
import { manifestText } from '../validate/output.js';
import { withCluster } from './cluster.js';
import { kindFlagValues } from './options.js';
import type { SharedOptions } from './options.js';
import { kindsOnRequest, loadControllers, loadKinds } from './config.js';
import { refuseDataLoss } from './data-loss.js';
import { CliError, confirmed, print, printError, printWritten } from './output.js';
import { givenFiles } from './admin-file.js';
import { operatorImage } from './package.js';

interface InstallOptions extends SharedOptions {
  readonly namespace: string;
  readonly image: string;
  readonly replicas: number;
  readonly monitoring?: readonly MonitoringPart[];
  readonly monitoringLabels?: Readonly<Record<string, string>>;
  readonly runbooks?: string;
  readonly metricsSecure?: boolean;
  readonly metricsCertSecret?: string;
  readonly omitUserIds?: boolean;
  readonly onUpgrade?: string;
  readonly argoHealth?: boolean;
  readonly apply?: boolean;
  readonly replace?: boolean;
  readonly dryRun?: boolean;
  readonly acceptDataLoss?: boolean;
  readonly output: 'yaml' | 'json' | 'helm';
  readonly outputDir?: string;
}

/** `reconstruct install`: prints or applies the operator's own manifests, or writes them as a Helm chart. */
export async function runInstall(options: InstallOptions, command: Command): Promise<void> {
  const isGiven = (option: string): boolean => command.getOptionValueSource(option) === 'cli';
  refuseContradictions(options, isGiven('namespace'));
  const { namespace, image, replicas, watchNamespace, runbooks } = options;
  const { kinds, controllers } = await loadControllers(options);
  if (options.argoHealth) return print(writeYaml(argoHealthPatch(kinds)));
  const props: InstallProps = {
    ...{ namespace, image, replicas, kinds, controllers, flags: kindFlagValues(options) },
    ...(options.omitUserIds && { omitUserIds: true }),
    ...(options.onUpgrade !== undefined && { onUpgrade: options.onUpgrade }),
    ...(watchNamespace && { watchNamespaces: watchNamespace }),
    ...(await givenFiles(options)),
    ...(options.monitoring && {
      monitoring: {
        parts: options.monitoring,
        ...(options.monitoringLabels && { labels: options.monitoringLabels }),
        ...(runbooks !== undefined && { runbooks }),
      },
    }),
    ...(options.metricsSecure && {
      secureMetrics: options.metricsCertSecret ? { certificateSecret: options.metricsCertSecret } : {},
    }),
  };
  if (!options.apply) return write(props, options);
  // A proposed command takes these over.
  const given = defined({
    '--config': options.config,
    '--image': isGiven('image') ? image : undefined,
    '--replicas': isGiven('replicas') ? String(replicas) : undefined,
    '--kubeconfig': options.kubeconfig,
    '--context': options.context,
  });
  const { replace = false, dryRun = false } = options;
  await apply(props, options, { replace, dryRun, given });
}

function defined(options: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
}

/** @throws CliError with exit code 2 */
function refuseContradictions(options: InstallOptions, hasNamespace: boolean): void {
  const { apply: isApplied, monitoring, output, outputDir } = options;
  const isChart = output === 'helm';
  const folder = outputDir ?? process.env.CDK8S_OUTDIR;
  const wrong: readonly (readonly [isWrong: unknown, message: string])[] = [
    [
      isChart && hasNamespace,
      '--namespace is for Helm to say: leave it out, and use "helm install --namespace"',
    ],
    [options.dryRun && !isApplied, '--dry-run needs --apply: add it; without it, nothing is written anyway'],
    [options.replace && !isApplied, '--replace needs --apply: add it'],
    [options.acceptDataLoss && !isApplied, '--accept-data-loss needs --apply: add it'],
    [options.monitoringLabels && !monitoring, '--monitoring-labels needs --monitoring: add it'],
    [options.runbooks !== undefined && !monitoring, '--runbooks needs --monitoring: add it'],
    [
      options.metricsCertSecret !== undefined && !options.metricsSecure,
      '--metrics-cert-secret needs --metrics-secure: add it',
    ],
    [isChart && !folder, 'A chart is a folder: name it with --output-dir DIR'],
    [output === 'json' && folder, 'A folder gets YAML or a chart: leave out -o json'],
  ];
  for (const [isWrong, message] of wrong) if (isWrong) throw new CliError(message);
}

/** Prints the manifests, or writes them or the chart into a folder. */
async function write(props: InstallProps, options: InstallOptions): Promise<void> {
  const folder = options.outputDir ?? (process.env.CDK8S_OUTDIR || undefined);
  const written = (changes: FolderChanges): void => {
    if (options.outputDir !== undefined) printWritten(options.outputDir, changes);
  };
  const isChosen = options.kinds !== undefined;
  if (options.output === 'helm') {
    const others = (props.controllers ?? []).map(({ name }) => name);
    if (others.length > 0)
      throw new CliError(`A chart has kinds alone, and no ${others.join()}: name the kinds with --kinds`);
    const on = props.kinds.filter((kind) => isChosen || foreignNamespaces(kind, props).length === 0);
    written(writeFolder(folder ?? '', helmChart({ ...props, on })));
    return;
  }
  const kinds = isChosen ? props.kinds : kindsForAnyCluster(props, printError);
  const items = installManifests({ ...props, kinds });
  if (options.output === 'json') {
    await print(`${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 2)}\n`);
    return;
  }
  const text = manifestText(items);
  if (folder === undefined) await print(text);
  else written(writeFolder(folder, [{ name: 'reconstruct.yaml', text }]));
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function apply(props: InstallProps, options: InstallOptions, request: InstallRequest): Promise<void> {
  await withCluster(options, async (cluster) => {
    const kinds = await installableKinds(props, cluster, options.kinds === undefined, printError);
    const monitoring = props.monitoring && (await availableMonitoring(props.monitoring, cluster, printError));
    await applyInstallation({ ...props, kinds, ...(monitoring && { monitoring }) }, cluster, printLine, {
      ...request,
      ...(!options.acceptDataLoss && { checkDefinitions: (changes) => refuseDataLoss(changes, cluster) }),
    });
    const { image, namespace, dryRun } = options;
    // No registry serves an image of that name.
    if (image === operatorImage() && image.startsWith('reconstruct:'))
      printLine(`The image ${image} has to be on the nodes: put it there, or name one with --image`);
    if (!dryRun)
      printLine(`Wait for it with "kubectl rollout status deployment/${INSTALL_NAME} -n ${namespace}"`);
  });
}

interface UninstallOptions extends SharedOptions {
  readonly namespace: string;
  readonly purge?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** `reconstruct uninstall`: removes what `reconstruct install` has made. */
export async function runUninstall(options: UninstallOptions): Promise<void> {
  const { namespace, purge = false, dryRun = false, yes = false } = options;
  if (!dryRun && !yes && !process.stdin.isTTY)
    throw new CliError(
      'uninstall asks before it removes anything, and there is no terminal: add --yes, or --dry-run to see what would go',
    );
  const named = await loadKinds(options);
  const names = new Set(named.map(({ crd }) => crd.metadata.name));
  // Kinds on request may have been asked for when it was installed.
  const onRequest = await Promise.all(Object.values(kindsOnRequest).map((load) => load()));
  const kinds = [...named, ...onRequest.filter(({ crd }) => !names.has(crd.metadata.name))];
  await withCluster(options, async (cluster) => {
    const props = { namespace, kinds, purge };
    if (dryRun || !yes) {
      const going = await uninstall({ ...props, dryRun: true }, cluster, printLine);
      if (dryRun || going.size === 0) return;
      const counts = [...going].map(([kind, count]) => `${count} ${kind}`).join(', ');
      if (!(await confirmed(`Remove ${counts}?`))) throw new CliError('Nothing was removed');
    }
    await uninstall({ ...props, dryRun: false }, cluster, printLine);
  });
}
