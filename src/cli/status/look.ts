import { objectKey } from '../../contract/object.js';
import { ApiError, classify } from '../../engine/api-error.js';
import type { Api } from '../../engine/api.js';
import { suggest } from '../../contract/suggest.js';
import { CliError } from '../exit.js';
import { notInstalled } from '../not-installed.js';
import { collect } from './collect.js';
import type { StatusDocument } from './document.js';
import { ListedSource } from './source.js';
import type { Source } from './source.js';
import type { Target } from './targets.js';

export interface LookProps {
  readonly targets: readonly Target[];
  /** @default - all */
  readonly namespace?: string;
  /** Whether it is looked who looks after them. @default true */
  readonly operators?: boolean;
}

/** What is asked for, to be looked at once or again and again. */
export class Look {
  constructor(private readonly props: LookProps) {}

  /**
   * @throws CliError with exit code 2 where there is no custom resource of that name, 3 where the kind isn't installed;
   *   OperatorError where the cluster refuses
   */
  async once(api: Api): Promise<StatusDocument> {
    const document = await this.at(new ListedSource(api));
    await this.refuseMissing(document, api);
    return document;
  }

  /** @throws as `once`, but for a name that isn't there */
  async at(source: Source): Promise<StatusDocument> {
    try {
      return await collect({ ...this.props, source, now: () => new Date() });
    } catch (error) {
      if (error instanceof ApiError && error.kindNotServed)
        throw notInstalled(this.props.targets.map(({ kind }) => kind.type.kind));
      throw classify(error, 'Look for custom resources');
    }
  }

  /** @throws CliError with exit code 2, and what is there of a similar name */
  async refuseMissing({ resources }: StatusDocument, api: Api): Promise<void> {
    const [{ kind, name } = { kind: undefined, name: undefined }] = this.props.targets;
    if (!kind || name === undefined || resources.length > 0) return;
    const { namespace } = this.props;
    const where = namespace !== undefined && kind.type.namespaced ? { namespace } : {};
    const others = await new ListedSource(api).list({ type: kind.type, ...where });
    const names = others.map(({ metadata }) => metadata.name);
    const near = suggest(name, names);
    const listed = names.length === 0 ? 'none' : names.slice(0, 10).join(', ');
    throw new CliError(
      `There is no ${kind.type.kind} ${objectKey(where.namespace, name)}` +
        (near === undefined ? `; there are ${listed}` : `; did you mean ${near}?`),
      2,
    );
  }
}
