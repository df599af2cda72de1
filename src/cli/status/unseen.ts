import { messageOf } from '../../contract/error.js';
import { ApiError } from '../../engine/api-error.js';

/** What couldn't be seen, told in as few sentences as will do. */
export class Unseen {
  private readonly forbidden = new Set<string>();
  private readonly unwatchable = new Set<string>();
  private readonly others = new Set<string>();

  /** @param plural the type, as in `pods` */
  readonly note = (plural: string, error: unknown): void => {
    if (error instanceof ApiError && error.code === 403) this.forbiddenBy(error).add(plural);
    else this.others.add(`Not seen: ${messageOf(error)}`);
  };

  get sentences(): string[] {
    return [...wanting('list', this.forbidden), ...wanting('watch', this.unwatchable), ...this.others];
  }

  private forbiddenBy({ message }: ApiError): Set<string> {
    return message.startsWith('Watch ') ? this.unwatchable : this.forbidden;
  }
}

function wanting(verb: string, plurals: ReadonlySet<string>): string[] {
  return plurals.size === 0
    ? []
    : [`Not seen, for want of the right to ${verb} them: ${[...plurals].sort().join(', ')}`];
}
