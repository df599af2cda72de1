/** An address that can't be used; the message names the option, the address and the remedy. */
export class AddressError extends Error {
  override readonly name = 'AddressError';
}
