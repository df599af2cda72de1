import { styleText } from 'node:util';

export type Color = 'bold' | 'green' | 'red' | 'yellow' | 'dim';

/** Puts a text in a colour, or leaves it as it is. */
export type Paint = (color: Color, text: string) => string;

/** For standard output: in colour on a terminal, unless NO_COLOR says otherwise. */
export const paint: Paint = (color, text) => styleText(color, text, { stream: process.stdout });
