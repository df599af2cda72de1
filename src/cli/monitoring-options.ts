import { InvalidArgumentError, Option } from 'commander';
import { INSTALLATION_LABELS } from '../install/names.js';
import { MONITORING_PARTS } from '../install/monitoring/props.js';
import type { MonitoringPart, MonitoringProps } from '../install/monitoring/props.js';
import { CliError } from './exit.js';
import { list } from './options.js';

export interface MonitoringOptions {
  readonly monitoring?: readonly MonitoringPart[];
  readonly monitoringLabels?: Readonly<Record<string, string>>;
  readonly runbooks?: string;
}

/** What `install` may add for Prometheus and Grafana. */
export const monitoringOptions = {
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
export function monitoringProps({ monitoring, monitoringLabels, runbooks }: MonitoringOptions): {
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
