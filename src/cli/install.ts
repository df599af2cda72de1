import { Command, InvalidArgumentError, Option } from 'commander';
import type { Kind, FlagValues } from '../contract/kind.js';
import type { InstallRequest } from '../install/apply.js';
import type { Given } from '../install/command-in-use.js';
import { MONITORING_PARTS } from '../install/props.js';
import type { MonitoringPart, MonitoringProps, InstalledPolicy, InstallProps } from '../install/props.js';
import { DEFAULT_NAMESPACE, INSTALL_NAME, INSTALLATION_LABELS } from '../install/names.js';
import { builtInFlags } from '../kinds/flags.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues, list, namespace, positiveInteger, sharedOptions } from './options.js';
import { kindsOnRequest } from './config.js';
import { print } from './output.js';
import { operatorImage, packageVersion } from './version.js';
import { asCliError, OLDEST, withCluster } from './with-cluster.js';
import type { ClusterOptions } from './with-cluster.js';

interface InstallOptions extends ClusterOptions, MonitoringOptions {
  readonly namespace: string;
  readonly image: string;
  readonly config?: string;
  readonly kinds?: string[];
  readonly watchNamespace?: string[];
  readonly replicas: number;
  readonly policy?: string;
  readonly apply?: boolean;
  readonly replace?: boolean;
  readonly acceptDataLoss?: boolean;
  readonly format: 'yaml' | 'helm';
  readonly output?: string;
}

const OUTPUT_FILE = 'reconstruct.yaml';

/** `reconstruct install`: the operator's own manifests, printed or applied. */
export function installCommand(flags = builtInFlags): Command {
  const command = new Command('install')
    .summary("print or apply the operator's own manifests")
    .description(
      "The operator's own manifests: CRDs, the controller, and the rights that its kinds need and no others. " +
        'Printed, unless they are to be applied.',
    )
    .addOption(
      new Option('-n, --namespace <name>', 'where the operator runs')
        .argParser(namespace)
        .default(DEFAULT_NAMESPACE),
    )
    .addOption(
      new Option('--image <image>', 'the image of the controller, with a tag or a digest')
        .argParser(image)
        .default(operatorImage()),
    )
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .addOption(sharedOptions.policy('everything but routes'))
    .addOption(sharedOptions.watchNamespace())
    .addOption(
      new Option('--replicas <number>', 'controllers, of which one leads')
        .argParser(positiveInteger)
        .default(2),
    )
    .addOption(monitoringOptions.monitoring())
    .addOption(monitoringOptions.labels())
    .addOption(monitoringOptions.runbooks())
    .addOption(new Option('--print', 'print YAML; this is the default').conflicts('apply'))
    .addOption(
      new Option('--format <format>', 'YAML, or a Helm chart with what is given here for default values')
        .choices(['yaml', 'helm'])
        .default('yaml'),
    )
    .addOption(
      new Option('-o, --output <folder>', 'write to this folder (default: standard output)').conflicts(
        'apply',
      ),
    )
    .addOption(
      new Option('--apply', 'apply them to the cluster, and remove what an earlier installation had'),
    )
    .addOption(
      new Option(
        '--replace',
        'with --apply: drop what an earlier installation has and this one leaves out, such as its policy',
      ),
    )
    .addOption(
      new Option(
        '--accept-data-loss',
        'with --apply: apply CRDs even if stored objects lose fields, become invalid, or are of a version that goes',
      ),
    )
    .addOption(sharedOptions.kubeconfig())
    .addOption(sharedOptions.context())
    .action((options: InstallOptions) => {
      if (options.format === 'helm') checkHelm(options, command.getOptionValueSource('namespace'));
      if (options.replace && !options.apply) throw new CliError('--replace needs --apply: add it', 2);
      if (options.acceptDataLoss && !options.apply)
        throw new CliError('--accept-data-loss needs --apply: add it', 2);
      const given = givenOf(options, (name) => command.getOptionValueSource(name) === 'cli');
      return install(options, kindFlagValues(flags, options), {
        replace: options.replace ?? false,
        flags,
        given,
      });
    });
  return addKindFlags(command, flags);
}

/** What a command that is proposed has of this one. */
function givenOf(options: InstallOptions, isGiven: (name: string) => boolean): Given {
  const { kubeconfig, context, image, replicas, config } = options;
  return {
    cluster: {
      ...(kubeconfig !== undefined && { '--kubeconfig': kubeconfig }),
      ...(context !== undefined && { '--context': context }),
    },
    options: {
      ...(config !== undefined && { '--config': config }),
      ...(isGiven('image') && { '--image': image }),
      ...(isGiven('replicas') && { '--replicas': String(replicas) }),
    },
  };
}

function image(value: string): string {
  const reference = /^[a-z0-9][\w.-]*(:\d+)?(\/[\w.-]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/i;
  const match = reference.exec(value);
  if (!match) throw new InvalidArgumentError(`${value} can't name an image.`);
  if (!/(:[\w][\w.-]*|@sha256:[0-9a-f]{64})$/.test(value.slice(value.lastIndexOf('/') + 1)))
    throw new InvalidArgumentError(
      `${value} may be another image tomorrow: add a tag or a digest, as in ${value}:${packageVersion()}.`,
    );
  return value;
}

/** @throws CliError with exit code 2 where an option means nothing to a chart */
function checkHelm(options: InstallOptions, namespaceFrom: string | undefined): void {
  if (options.apply)
    throw new CliError(
      '--apply needs no chart: leave out --format helm, or give -o DIR and use "helm install"',
      2,
    );
  if (namespaceFrom !== 'default')
    throw new CliError('--namespace is for Helm to say: leave it out, and use "helm install --namespace"', 2);
}

async function install(options: InstallOptions, flags: FlagValues, request: InstallRequest): Promise<void> {
  const [{ builtInKinds }, { loadKinds }] = await Promise.all([
    import('../kinds/index.js'),
    import('./config.js'),
  ]);
  const kinds = await loadKinds({ ...options, builtIn: builtInKinds, onRequest: kindsOnRequest });
  const policy = await installedPolicy(options, builtInKinds);
  const props: InstallProps = {
    ...{ namespace: options.namespace, image: options.image, replicas: options.replicas, kinds, flags },
    ...(options.watchNamespace && { watchNamespaces: options.watchNamespace }),
    ...(policy && { policy }),
    ...monitoringProps(options),
  };
  if (options.apply) await apply(props, options, request);
  else if (options.format === 'helm') await writeChart(props, options);
  else await printManifests(props, options);
}

async function installedPolicy(
  options: InstallOptions,
  builtIn: readonly Kind[],
): Promise<InstalledPolicy | undefined> {
  const { policyFileOf } = await import('./policy-file.js');
  const file = await policyFileOf(options, builtIn);
  if (!file) return undefined;
  const text = await file.read();
  return { text, parsed: file.parse(text) };
}

async function printManifests(props: InstallProps, options: InstallOptions): Promise<void> {
  const [{ installManifests }, { kindsForAnyCluster }, { manifestText }, { writeFolder }] = await Promise.all(
    [
      import('../install/manifests.js'),
      import('../install/installable.js'),
      import('../synth/output.js'),
      import('../synth/folder.js'),
    ],
  );
  try {
    const kinds = options.kinds === undefined ? kindsForAnyCluster(props, warn) : props.kinds;
    const text = manifestText(installManifests({ ...props, kinds }));
    const folder = folderFor(options);
    if (folder === undefined) await print(text);
    else writeFolder(folder, [{ name: OUTPUT_FILE, text }]);
  } catch (error) {
    throw asCliError(error);
  }
}

async function writeChart(props: InstallProps, options: InstallOptions): Promise<void> {
  const folder = folderFor(options);
  if (folder === undefined) throw new CliError('A chart is a folder: name it with -o DIR', 2);
  const [{ helmChart }, { writeFolder }, { operatorRules }] = await Promise.all([
    import('../install/helm/chart.js'),
    import('../synth/folder.js'),
    import('../install/access.js'),
  ]);
  const needsNamespace = (kind: Kind): boolean =>
    operatorRules([kind], props).some(({ namespaces = [] }) => namespaces.length > 0);
  try {
    const on = props.kinds.filter((kind) => options.kinds !== undefined || !needsNamespace(kind));
    const versions = { version: packageVersion(), oldestKubernetes: OLDEST };
    writeFolder(folder, helmChart({ ...props, on, ...versions }), 'chart');
  } catch (error) {
    throw asCliError(error);
  }
}

function warn(line: string): void {
  process.stderr.write(`${line}\n`);
}

function folderFor({ output }: InstallOptions): string | undefined {
  return output ?? (process.env.CDK8S_OUTDIR || undefined);
}

async function apply(props: InstallProps, options: InstallOptions, request: InstallRequest): Promise<void> {
  const [{ applyInstallation }, { refuseDataLoss }, { installableKinds }, { availableMonitoring }] =
    await Promise.all([
      import('../install/apply.js'),
      import('./data-loss.js'),
      import('../install/installable.js'),
      import('../install/installable.js'),
    ]);
  await withCluster(options, async (cluster) => {
    const kinds = await installableKinds(props, cluster, {
      mayLeaveOut: options.kinds === undefined,
      tell: warn,
    });
    const monitoring = props.monitoring && (await availableMonitoring(props.monitoring, cluster, warn));
    await applyInstallation(
      { ...props, kinds, ...(monitoring && { monitoring }) },
      cluster,
      (line) => void process.stdout.write(`${line}\n`),
      {
        ...request,
        ...(!options.acceptDataLoss && { checkDefinitions: (changes) => refuseDataLoss(changes, cluster) }),
      },
    );
    for (const line of nextSteps(options)) process.stdout.write(`${line}\n`);
  });
}

/** What is left to do once all is applied. */
function nextSteps({ namespace: home, image: name }: InstallOptions): string[] {
  const wait = `Wait for it with "kubectl rollout status deployment/${INSTALL_NAME} -n ${home}"`;
  // Nobody serves an image of that name.
  const isLocal = name === operatorImage() && name.startsWith('reconstruct:');
  return [
    ...(isLocal ? [`The image ${name} has to be on the nodes: put it there, or name one with --image`] : []),
    wait,
  ];
}

interface MonitoringOptions {
  readonly monitoring?: readonly MonitoringPart[];
  readonly monitoringLabels?: Readonly<Record<string, string>>;
  readonly runbooks?: string;
}

/** What `install` may add for Prometheus and Grafana. */
const monitoringOptions = {
  monitoring: () =>
    new Option(
      '--monitoring [parts]',
      `for Prometheus and Grafana: ${MONITORING_PARTS.join()} (all, if none is named)`,
    )
      .preset(MONITORING_PARTS.join())
      .argParser(parts),
  labels: () =>
    new Option(
      '--monitoring-labels <labels>',
      'on what is for Prometheus and Grafana, where these select by labels, e.g. release=prometheus',
    ).argParser(labels),
  runbooks: () => new Option('--runbooks <url>', 'where the pages of the alerts are read').argParser(url),
};

/** @throws CliError where something is said of a monitoring that isn't asked for */
function monitoringProps({ monitoring, monitoringLabels, runbooks }: MonitoringOptions): {
  readonly monitoring?: MonitoringProps;
} {
  if (monitoring) {
    return {
      monitoring: {
        parts: monitoring,
        ...(monitoringLabels && { labels: monitoringLabels }),
        ...(runbooks !== undefined && { runbooks }),
      },
    };
  }
  if (monitoringLabels) throw new CliError('--monitoring-labels needs --monitoring: add it', 2);
  if (runbooks !== undefined) throw new CliError('--runbooks needs --monitoring: add it', 2);
  return {};
}

function parts(value: string): MonitoringPart[] {
  const named = list(value, undefined);
  const unknown = named.find((name) => !MONITORING_PARTS.some((part) => part === name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no ${unknown}: name some of ${MONITORING_PARTS.join(', ')}.`);
  return MONITORING_PARTS.filter((part) => named.includes(part));
}

const NAME = '[A-Za-z0-9]([-\\w.]{0,61}[A-Za-z0-9])?';
const LABEL = new RegExp(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${NAME}=(${NAME})?$`);

function labels(value: string): Record<string, string> {
  const wanted: Record<string, string> = {};
  for (const label of list(value, undefined)) {
    if (!LABEL.test(label)) throw new InvalidArgumentError(`${label} is no label: write name=value.`);
    const [name = '', text = ''] = label.split('=');
    if (INSTALLATION_LABELS.includes(name))
      throw new InvalidArgumentError(`${name} is set by the installation itself: leave it out.`);
    wanted[name] = text;
  }
  return wanted;
}

function url(value: string): string {
  if (!URL.canParse(value) || !/^https?:/.test(value))
    throw new InvalidArgumentError(`${value} is no URL: write one that begins with https://.`);
  return value.replace(/(?<!\/)\/+$/, '');
}
