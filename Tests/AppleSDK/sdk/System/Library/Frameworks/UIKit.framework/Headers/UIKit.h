#pragma once
#include <Foundation/Foundation.h>
#define UI_ACTOR __attribute__((swift_attr("@UIActor")))
#pragma clang assume_nonnull begin
@class UIApplication, UIScene, UISceneSession, UISceneConnectionOptions, UIView, UIViewController, UIWindowScene;
UI_ACTOR @interface UIResponder : NSObject
@end
@protocol UIApplicationDelegate;
typedef NSString *UIApplicationLaunchOptionsKey __attribute__((swift_newtype(struct))) NS_SWIFT_NAME(UIApplication.LaunchOptionsKey);
typedef NSString *UISceneSessionRole __attribute__((swift_newtype(struct))) NS_SWIFT_NAME(UISceneSession.Role);
typedef NSUInteger UIBackgroundTaskIdentifier __attribute__((swift_newtype(struct)));
extern const UIBackgroundTaskIdentifier UIBackgroundTaskInvalid NS_SWIFT_NAME(UIBackgroundTaskIdentifier.invalid);
UI_ACTOR @interface UIApplication : UIResponder
@property (class, nonatomic, readonly) UIApplication *sharedApplication NS_SWIFT_NAME(shared);
- (UIBackgroundTaskIdentifier)beginBackgroundTaskWithExpirationHandler:(void (UI_ACTOR NS_SWIFT_SENDABLE ^_Nullable)(void))handler NS_SWIFT_NAME(beginBackgroundTask(expirationHandler:));
- (void)endBackgroundTask:(UIBackgroundTaskIdentifier)identifier;
@property (nullable, nonatomic, assign) id <UIApplicationDelegate> delegate;
@end
UI_ACTOR @interface UISceneConfiguration : NSObject
- (instancetype)initWithName:(nullable NSString *)name sessionRole:(UISceneSessionRole)sessionRole;
@property (nonatomic, nullable) Class delegateClass;
@end
UI_ACTOR @interface UISceneSession : NSObject
@property (nonatomic, readonly) UISceneSessionRole role;
@end
UI_ACTOR NS_SWIFT_NAME(UIScene.ConnectionOptions) @interface UISceneConnectionOptions : NSObject
@end
UI_ACTOR @interface UIScene : UIResponder
@end
UI_ACTOR @interface UIWindowScene : UIScene
@end
UI_ACTOR @protocol UIApplicationDelegate <NSObject>
@optional
- (BOOL)application:(UIApplication *)application didFinishLaunchingWithOptions:(nullable NSDictionary<UIApplicationLaunchOptionsKey, id> *)launchOptions;
- (UISceneConfiguration *)application:(UIApplication *)application configurationForConnectingSceneSession:(UISceneSession *)connectingSceneSession options:(UISceneConnectionOptions *)options;
- (void)application:(UIApplication *)application handleEventsForBackgroundURLSession:(NSString *)identifier completionHandler:(void (^)(void))completionHandler;
@end
UI_ACTOR @protocol UISceneDelegate <NSObject>
@optional
- (void)sceneDidEnterBackground:(UIScene *)scene;
- (void)sceneWillEnterForeground:(UIScene *)scene;
- (void)scene:(UIScene *)scene willConnectToSession:(UISceneSession *)session options:(UISceneConnectionOptions *)connectionOptions;
@end
UI_ACTOR @protocol UIWindowSceneDelegate <UISceneDelegate>
@end
typedef NS_OPTIONS(NSUInteger, UIControlEvents) { UIControlEventTouchUpInside = 1 << 6 } NS_SWIFT_NAME(UIControl.Event);
typedef NS_OPTIONS(NSUInteger, UIControlState) { UIControlStateHighlighted = 1 } NS_SWIFT_NAME(UIControl.State);
typedef NS_ENUM(NSInteger, UIButtonType) { UIButtonTypeCustom = 0, UIButtonTypeSystem = 1 } NS_SWIFT_NAME(UIButton.ButtonType);
typedef NS_ENUM(NSInteger, UILayoutConstraintAxis) { UILayoutConstraintAxisHorizontal = 0, UILayoutConstraintAxisVertical = 1 } NS_SWIFT_NAME(NSLayoutConstraint.Axis);
typedef NS_ENUM(NSInteger, UIStackViewDistribution) { UIStackViewDistributionFill = 0, UIStackViewDistributionFillEqually = 1 } NS_SWIFT_NAME(UIStackView.Distribution);
NS_SWIFT_NAME(NSLayoutConstraint) UI_ACTOR @interface NSLayoutConstraint : NSObject
@end
UI_ACTOR @interface UIView : UIResponder
@end
UI_ACTOR @interface UIControl : UIView
- (void)addTarget:(nullable id)target action:(SEL)action forControlEvents:(UIControlEvents)controlEvents;
@end
UI_ACTOR @interface UIAction : NSObject
@end
UI_ACTOR @interface UIButton : UIControl
+ (instancetype)buttonWithType:(UIButtonType)buttonType;
- (void)setTitle:(nullable NSString *)title forState:(UIControlState)state;
@end
UI_ACTOR @interface UILabel : UIView
@property (nullable, nonatomic, copy) NSString *text;
@property (nonatomic) NSInteger numberOfLines;
@end
UI_ACTOR @interface UIProgressView : UIView
@property (nonatomic) float progress;
@end
UI_ACTOR @interface UIStackView : UIView
- (instancetype)initWithArrangedSubviews:(NSArray<__kindof UIView *> *)views;
@property (nonatomic) UILayoutConstraintAxis axis;
@property (nonatomic) UIStackViewDistribution distribution;
@end
UI_ACTOR @interface UIViewController : UIResponder <NSCoding>
- (instancetype)initWithNibName:(nullable NSString *)nibNameOrNil bundle:(nullable id)nibBundleOrNil NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
@property (null_resettable, nonatomic, strong) UIView *view;
- (void)loadView;
- (void)viewDidLoad;
- (void)presentViewController:(UIViewController *)viewControllerToPresent animated:(BOOL)flag completion:(nullable void (^)(void))completion NS_SWIFT_NAME(present(_:animated:completion:));
- (void)dismissViewControllerAnimated:(BOOL)flag completion:(nullable void (^)(void))completion NS_SWIFT_NAME(dismiss(animated:completion:));
@end
UI_ACTOR @interface UIWindow : UIView
- (instancetype)initWithWindowScene:(UIWindowScene *)windowScene NS_DESIGNATED_INITIALIZER AVAIL(11.0,13.0);
@property (nullable, nonatomic, strong) UIViewController *rootViewController;
- (void)makeKeyAndVisible;
@end
#pragma clang assume_nonnull end
