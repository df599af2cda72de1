import { messageOf, OperatorError } from '../contract/error.js';
import type { CustomResourceInput } from './custom-resource.js';
import { fileName } from './output.js';
import type { Remark } from './remark.js';
import { render } from './render.js';
import { renderTogether } from './together.js';
import type { Rendered, Together, TogetherOptions } from './together.js';

/**
 * Renders custom resources, each through its construct or all of a kind at once.
 * @param written takes what is rendered, as it comes, so that not all of it need be kept
 * @returns what there is to say
 */
export function renderAll(
  inputs: readonly CustomResourceInput[],
  options: TogetherOptions,
  written: (rendered: Rendered) => void,
): Omit<Together, 'rendered'> {
  const problems: Remark[] = [];
  for (const input of inputs) {
    const { kind, cr, document } = input;
    if (!('each' in kind.rendering)) continue;
    try {
      const objects = render(kind.rendering.each, cr, options.policy);
      written({ name: fileName(kind.type, cr), of: input, objects });
    } catch (error) {
      const path = error instanceof OperatorError ? error.path : [];
      problems.push({ document, path, message: messageOf(error) });
    }
  }
  const together = renderTogether(inputs, options);
  for (const rendered of together.rendered) written(rendered);
  return { problems: [...problems, ...together.problems], notes: together.notes };
}
