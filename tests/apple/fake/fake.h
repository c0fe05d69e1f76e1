/* fake.h: declarations of the fake Foundation and Metal of this folder. */
#ifndef LT_FAKE_H
#define LT_FAKE_H

#import <Foundation/Foundation.h>
#import <os/signpost.h>

/* Ends the program with a message when a rule of Metal is broken. */
void fake_check(bool ok, const char *what);
void *fake_block_copy(const void *block);
extern int fake_signposts; /* open intervals */

@interface NSConstantString : NSString
@end
@interface NSObject (Fake)
- (void)release;
@end
@interface NSError (Fake)
+ (NSError *)with:(NSString *)domain code:(NSInteger)code text:(NSString *)text;
@end
@interface FakeData : NSObject {
@public
  void *bytes;
  size_t size;
}
@end

#endif
