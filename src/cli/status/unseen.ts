import { messageOf } from '../../contract/error.js';
import { ApiError } from '../../engine/api-error.js';

/** What couldn't be seen, told in as few sentences as will do. */
export class Unseen {
  private readonly forbidden = new Set<string>();
  private readonly others = new Set<string>();

  /** @param plural the type, as in `pods` */
  readonly note = (plural: string, error: unknown): void => {
    if (error instanceof ApiError && error.code === 403) this.forbidden.add(plural);
    else this.others.add(`Not seen: ${messageOf(error)}`);
  };

  get sentences(): string[] {
    const names = [...this.forbidden].join(', ');
    const forbidden = names === '' ? [] : [`Not seen, for want of the right to list them: ${names}`];
    return [...forbidden, ...this.others];
  }
}
